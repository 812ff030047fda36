"""``tidewise log``: a job's history as a person reads it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from control_entries import FOUR, NOW_S, entry_for, plain_case

from cli.log import main, plain_row
from controller.log.control_log import Provenance
from controller.log.delta_log import DeltaControlLog, open_control_log
from include.settings import PROJECT
from models.control.limits import Limits
from models.control.state import Mode, ObservedJob

UNTIL = datetime.fromtimestamp(NOW_S + 3600, UTC).isoformat()
PROVENANCE = Provenance({"a": "Source: orders", "b": "enrich"})
ODD = 'live/<script>alert(1)</script> "\x1b[31m'


class Lease:
    number = first_number = 1

    def check(self) -> None:
        pass


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEWISE__PATHS__LAKE", str(tmp_path / "lake"))
    log = DeltaControlLog(open_control_log(str(tmp_path / "lake")), "live", Lease(), lambda: NOW_S)
    sent = entry_for(plain_case(), provenance=PROVENANCE)
    runs = ObservedJob("j", "RUNNING", FOUR, FOUR, free_slots=8)
    held = plain_case(NOW_S + 300, "step-2", limits=Limits(mode=Mode.AUTO, is_held=True))
    log.append_all([sent])
    log.append_all([replace(sent, answer="accepted", answered_at_s=NOW_S + 1)])
    log.append_all([entry_for(plain_case(NOW_S + 60, observed=runs, history=sent.history), provenance=PROVENANCE)])
    log.append_all([entry_for(held, provenance=PROVENANCE)])
    log.append_all([entry_for(plain_case(mode=Mode.DRY_RUN), job="live/payments", provenance=PROVENANCE)])
    log.append_all([entry_for(plain_case(mode=Mode.DRY_RUN), job=ODD)])
    return tmp_path


def lines_of(capsys: pytest.CaptureFixture[str], *argv: str) -> list[list[str]]:
    assert main([*argv, "--until", UNTIL]) == 0
    return [line.split(" | ") for line in capsys.readouterr().out.splitlines()]


def test_a_request_its_answer_its_confirmation_and_a_refusal_in_their_order(out, capsys) -> None:
    sent, confirmed, refused = lines_of(capsys, "live/orders")
    assert sent[1:] == [
        "2 slots",
        "4 slots (Source: orders 2->4, enrich 2->4)",
        "rescale: plan",
        "load rises (step-1)",
        "sent, accepted",
    ]
    assert confirmed[1:] == ["4 slots", "4 slots (as it is)", "confirm: runs_as_requested", "step-1", "-"]
    assert refused[3:] == ["refuse: on_hold", "a person has put the job on hold (step-2)", "-"]
    assert sent[0] == f"{datetime.fromtimestamp(NOW_S, UTC):%Y-%m-%d %H:%M:%S}"


def test_a_dry_run_is_marked(out, capsys) -> None:
    ((_, _, _, decision, _, outcome_of),) = lines_of(capsys, "live/payments")
    assert (decision, outcome_of) == ("rescale: plan [dry run]", "dry run: nothing was sent")


def test_every_column_as_json(out, capsys) -> None:
    assert main(["live/orders", "--json", "--until", UNTIL]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["verb"], row["answer"]) for row in rows] == [
        ("rescale", None),
        ("rescale", "accepted"),
        ("confirm", None),
        ("refuse", None),
    ]
    assert rows[0]["limits"]["rescales_per_day"] == "Infinity"
    assert rows[0]["history"]["in_flight"]["target"] == FOUR
    assert rows[0]["parallelism_to"] == {"Source: orders": 4, "enrich": 4}
    assert rows[0]["at"] == datetime.fromtimestamp(NOW_S, UTC).isoformat()


def test_what_a_row_does_not_say_is_null_in_json() -> None:
    unknown = dict.fromkeys(("parallelism_from", "operators", "desired", "answer"))
    known = {"parallelism_to": [("a", 4)], "limits": '{"mode": "auto"}', "entry": 7}
    assert plain_row({**unknown, **known, "at": datetime.fromtimestamp(NOW_S, UTC)}) == {
        **unknown,
        "parallelism_to": {"a": 4},
        "limits": {"mode": "auto"},
        "entry": 7,
        "at": datetime.fromtimestamp(NOW_S, UTC).isoformat(),
    }


def test_only_the_hours_asked_for(out, capsys) -> None:
    assert [line[3] for line in lines_of(capsys, "live/orders", "--hours", "0.95")] == ["refuse: on_hold"]
    assert main(["live/orders", "--hours", "0.5", "--until", UNTIL]) == 0
    reported, hint = capsys.readouterr().out.splitlines()
    assert reported == "no decision on live/orders in the 0.5 h before 2026-11-18 12:06Z: it was left as it is"
    command = hint.partition("tidewise log ")[2].split()
    assert main(command) == 0
    assert "refuse: on_hold" in capsys.readouterr().out


def test_a_fleet_that_only_waited_is_told_so_and_not_when_it_last_did(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("TIDEWISE__PATHS__LAKE", str(tmp_path / "lake"))
    log = DeltaControlLog(open_control_log(str(tmp_path / "lake")), "live", Lease(), lambda: NOW_S)
    log.append_all([entry_for(plain_case(mode=Mode.OFF), provenance=PROVENANCE)])
    assert main(["--until", UNTIL]) == 0
    (reported,) = capsys.readouterr().out.splitlines()
    assert reported.endswith("Z: jobs only waited (tidewise log CLUSTER/JOB says for what)")
    assert main(["--until", UNTIL, "--hours", "0.5"]) == 0
    assert "\nthe last decision is of 2026-11-18" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["live/order"], "no job 'live/order' in the control log; write 'live/orders'"),
        (["LIVE/ORDERS"], "'live/orders'"),
        (["zzz/qqq"], "write 'live/"),
        (["orders"], "expected cluster/job, such as live/checkout, not 'orders'"),
        (["live/orders", "--hours", "0"], "expected a number above 0"),
        (["live/orders", "--hours", "soon"], "not 'soon'"),
        (["live/orders", "--until", "soon"], "expected a time such as"),
    ],
)
def test_a_complaint_is_one_line_and_exit_code_2(out, capsys, argv: list[str], complaint: str) -> None:
    given = argv if "--until" in argv else [*argv, "--until", UNTIL]
    try:
        code = main(given)
    except SystemExit as stopped:
        code = stopped.code
    reported = capsys.readouterr()
    assert (code, reported.out, reported.err.count("\n")) == (2, "", 1)
    assert reported.err.startswith("log: ")
    assert complaint in reported.err


def test_without_a_log_the_message_says_what_writes_it(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("TIDEWISE__PATHS__LAKE", str(tmp_path / "none"))
    assert main(["live/orders"]) == 2
    assert "has no rows yet: the controller writes it" in capsys.readouterr().err


def test_names_are_shown_without_what_a_terminal_would_obey(out, capsys) -> None:
    assert main([ODD, "--hours", "0.1", "--until", UNTIL]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert main([f"{ODD}x", "--until", UNTIL]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_a_terminal_gets_a_table(out) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "cli.console", "log", "live/orders", "--until", UNTIL]
    environment = os.environ | {"COLUMNS": "160", "TERM": "xterm"}
    process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=follower)
    os.close(follower)
    shown = b""
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    os.close(leader)
    assert process.wait(60) == 0
    text = shown.decode()
    assert "Control log of live/orders (UTC)" in text
    assert "sent, accepted" in text
    assert "│" in text
