"""Bad arguments of commands of cli/ and of `make fuzz`: one line says what is expected, exit code 2, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_complaints import read_complaint

import tests.fuzz.__main__ as fuzz
from cli import collect, remake, run, ui
from include.settings import PROJECT
from lab.commands import backtest, history
from tools import cluster, record

MOMENT = "a time such as 2026-11-20T18:00:00Z"
END = ["--end", "2026-11-20T18:00:00Z"]
CASES = [
    (run, ["--days", "-1"], "a whole number from 1 to 366, not '-1'"),
    (run, ["--days", "0"], "a whole number from 1 to 366, not '0'"),
    (run, ["--days", "99999999"], "a whole number from 1 to 366, not '99999999'"),
    (run, ["--days", "a few"], "a whole number from 1 to 366, not 'a few'"),
    (
        run,
        ["--as-of", "nonsense"],
        f"{MOMENT} (ISO 8601, years 2000 to 2199), or 03:00 (0:00 to 23:59) for the last one, not 'nonsense'",
    ),
    (run, ["--as-of", "9999-12-31T23:30:00-12:00"], MOMENT),
    (run, ["--apply-mode", "now"], "choose from"),
    (run, ["--fast"], "unrecognized arguments: --fast"),
    (backtest, ["--as-of", "nonsense"], MOMENT),
    (remake, ["--as-of", "nonsense"], MOMENT),
    (remake, [], "--as-of"),
    (ui, ["--airflow-port", "0"], "a whole number from 1 to 65535, not '0'"),
    (ui, ["--mlflow-port", "99999"], "a whole number from 1 to 65535, not '99999'"),
    (ui, ["--airflow-port", "5000"], "two different ports"),
    (collect, ["--seconds", "-1"], "a number from 0 to 86400, not '-1'"),
    (collect, ["--seconds", "nan"], "a number from 0 to 86400, not 'nan'"),
    (collect, ["--files", "no/such/folder"], "a folder that is there, not 'no/such/folder'"),
    (cluster, ["--slots", "0"], "a whole number from 1 to 1000, not '0'"),
    (cluster, ["--day-minutes", "0"], "a number above 0 and up to 1440, not '0'"),
    (record, ["--minutes", "0"], "a number above 0 and up to 1440, not '0'"),
    (record, ["--poll-every-s", "inf"], "a number above 0 and up to 3600, not 'inf'"),
    (history, [*END, "--days", "0"], "a whole number from 1 to 3660, not '0'"),
    (history, [*END, "--workers", "0"], "a whole number from 1 to 256, not '0'"),
    (history, [*END, "--window-s", "7"], "whole minutes that divide an hour"),
    (history, ["--end", "nonsense"], MOMENT),
    (history, ["--end", "2026-11-20T18:30:00Z"], "not on a full hour"),
    (fuzz, ["--lines", "0"], "a whole number from 100 to 10000000, not '0'"),
    (fuzz, ["--seed", "x"], "a whole number of 0 or more, not 'x'"),
]
WRITERS = [
    (run, "--out", []),
    (backtest, "--out", []),
    (record, "--out", []),
    (history, "--out", END),
    (cluster, "--work-dir", []),
]


@pytest.mark.covers("ingest_review 4")
@pytest.mark.parametrize(("command", "arguments", "expected"), CASES)
def test_one_line_says_what_is_expected(command, arguments, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # nothing is written into the project
    assert expected in read_complaint(command.main, arguments, capsys)


@pytest.mark.parametrize(("command", "option", "others"), WRITERS)
def test_a_file_is_no_place_to_write_below(command, option, others, capsys, tmp_path):
    (tmp_path / "file").write_text("kept")
    line = read_complaint(command.main, [*others, option, str(tmp_path / "file")], capsys)
    assert f"argument {option}" in line
    assert str(tmp_path / "file") in line
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize(("command", "option", "others"), WRITERS)
def test_a_place_below_a_file_is_refused(command, option, others, capsys, tmp_path):
    (tmp_path / "file").write_text("kept")
    line = read_complaint(command.main, [*others, option, str(tmp_path / "file" / "sub" / "out")], capsys)
    assert f"argument {option}" in line


@pytest.mark.covers("ingest_review 4")
@pytest.mark.parametrize("command", [run, backtest], ids=["run", "backtest"])
def test_a_read_only_place_is_refused(command, capsys):
    line = read_complaint(command.main, ["--out", "/proc/tidewise"], capsys)  # nobody can write there, not even root
    assert "argument --out: expected a folder to write to, not '/proc/tidewise'" in line


def test_as_a_user_sees_it():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TIDEWISE")}
    done = subprocess.run(
        [sys.executable, "-m", "cli.console", "run", "--no-such-option"],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--help lists the options" in done.stderr


def test_a_recording_does_not_replace_anything_else(capsys, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("kept")
    line = read_complaint(record.main, ["--out", str(tmp_path / "out")], capsys)
    assert "is not a recording and would be replaced" in line
    assert Path(tmp_path / "out" / "thesis.txt").read_text() == "kept"
