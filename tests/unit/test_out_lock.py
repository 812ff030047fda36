"""Two commands with the same ``--out``: the second says who holds it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest

from cli import run
from cli.out_lock import OutInUseError, hold_folder
from include.settings import PROJECT
from lab.commands import backtest, history
from tools import record

HOLD = """
import sys, time
from pathlib import Path
from cli.out_lock import hold_folder
with hold_folder(Path(sys.argv[1]), "make run", *sys.argv[2:]):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder():
    """Start processes that hold a folder."""
    started = []

    def hold(out, *file) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLD, str(out), *file]
        child = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
        started.append(child)
        assert child.stdout.readline() == "held\n"
        return child

    yield hold
    for child in started:
        child.kill()
        child.wait()


def assert_refused(main, arguments, child, capsys) -> None:
    assert main(arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    reported = re.search(
        r"in use by `make run` \(process (\d+), since (\S+)\): wait for its end or pass another", lines[0]
    )
    assert reported, lines[0]
    assert int(reported[1]) == child.pid
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", reported[2])


@pytest.mark.covers("ingest_review 4")
@pytest.mark.parametrize("command", [run, backtest], ids=["run", "backtest"])
def test_the_second_says_who_holds_the_folder(command, holder, capsys, tmp_path):
    child = holder(tmp_path / "out")
    before = sorted((tmp_path / "out").iterdir())
    assert_refused(command.main, ["--out", str(tmp_path / "out")], child, capsys)
    assert sorted((tmp_path / "out").iterdir()) == before


@pytest.mark.parametrize(
    ("command", "arguments"), [(history, ["--end", "2026-11-20T18:00:00Z", "--hours", "1"]), (record, [])]
)
def test_what_replaces_a_folder_holds_it_from_beside(command, arguments, holder, capsys, tmp_path):
    child = holder(tmp_path, ".raw.lock")
    assert_refused(command.main, [*arguments, "--out", str(tmp_path / "raw")], child, capsys)
    assert not (tmp_path / "raw").exists()


def test_a_killed_holder_holds_nothing(holder, tmp_path):
    child = holder(tmp_path)
    with pytest.raises(OutInUseError), hold_folder(tmp_path, "make run"):
        pass
    child.kill()
    child.wait()
    with hold_folder(tmp_path, "tidewise backtest"):
        pass


def test_a_folder_can_be_held_again_and_its_holder_is_the_last(tmp_path):
    with hold_folder(tmp_path, "make run"):
        pass
    with (
        hold_folder(tmp_path, "tidewise backtest"),
        pytest.raises(OutInUseError, match=f"`tidewise backtest` .process {os.getpid()}"),
        hold_folder(tmp_path, "make run"),
    ):
        pass


def test_programs_that_a_command_starts_do_not_keep_its_folder(tmp_path):
    with hold_folder(tmp_path, "make run"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        time.sleep(0.1)
        with hold_folder(tmp_path, "make run"):
            assert child.poll() is None
    finally:
        child.kill()
        child.wait()
