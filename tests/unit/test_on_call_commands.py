"""The commands of somebody on call, on a lake that the controller itself has written."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from controlled_cluster import ControlledCluster, controlled_cluster

from include.settings import PROJECT

Shown = tuple[int, str, str]
BEFORE, FOUR = {"1" * 32: 1, "2" * 32: 2}, {"1" * 32: 4, "2" * 32: 4}
KEYS = {
    "status": {"schema", "at", "needs_person", "health", "clusters", "models", "holds", "waiting", "jobs"},
    "plan": {"schema", "at", "hours", "steps"},
    "log": {"schema", "until", "hours", "decisions", "acts"},
    "why": {"schema", "at", "explanation"},
    "quarantine": {"schema", "since", "until", "total", "lines"},
    "undo": {"schema", "at", "is_ordered", "by", "until", "undo", "warnings"},
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlledCluster]:
    """A job that was rescaled by a plan and runs as requested."""
    with controlled_cluster(tmp_path, monkeypatch) as world:
        assert world.want(4) == "rescale plan"
        assert world.want(4) == "confirm runs_as_requested"
        assert world.job.requested == FOUR
        yield world


def ask(capsys: pytest.CaptureFixture[str], command: str, *argv: str) -> Shown:
    module: ModuleType = importlib.import_module(f"cli.{command}")
    capsys.readouterr()
    try:
        code = module.main(list(argv))
    except SystemExit as stopped:
        code = stopped.code
    reported = capsys.readouterr()
    return code, reported.out, reported.err


def ask_json(capsys: pytest.CaptureFixture[str], command: str, *argv: str) -> dict[str, Any]:
    result = json.loads(ask(capsys, command, *argv, "--json")[1])
    assert result["schema"] == f"tidewise.{command}/1"
    assert result.keys() == KEYS[command]
    return result


def test_status_says_what_runs_what_is_old_and_what_to_do(world, capsys) -> None:
    code, shown, _ = ask(capsys, "status")
    assert code == 1
    assert re.search(r"live: 1 job \(1 auto\), 4 slots; controller \d+ s ago, plan never", shown)
    assert "Plan old (plan_old)" in shown
    assert "-> does tidewise_hour run?" in shown
    assert "Controller late" not in shown
    (job,) = ask_json(capsys, "status")["jobs"]
    assert (job["cluster"], job["job"], job["mode"], job["state"], job["slots_now"]) == (
        *("live", "orders", "auto", "RUNNING", 4),
    )
    assert job["last_rescale"]["step_id"] == "step-4"


def test_why_tells_the_request_and_what_flink_said(world, capsys) -> None:
    code, shown, _ = ask(capsys, "why", "live/orders")
    assert code == 0
    first, because, *_ = shown.splitlines()
    assert "rescale by plan, 2 -> 4 slots (Source: orders 1->4, enrich 2->4)" in first
    assert because.startswith("  because  load rises")
    assert "Flink: accepted" in shown
    assert re.search(r"ran as requested after .*: accepted after \d+ s", shown)
    explanation = ask_json(capsys, "why", "live/orders")["explanation"]
    assert (explanation["decision"]["verb"], explanation["answer"]) == ("rescale", "accepted")
    assert explanation["confirmed_at"] > explanation["sent_at"]


def test_why_tells_what_else_was_wanted_since(world, capsys) -> None:
    assert world.want(6) == "wait cooldown"
    shown = ask(capsys, "why", "live/orders")[1]
    assert re.search(r"wait: cooldown, .*, wants plan: load rises", shown)


def test_undo_is_shown_first_then_sent_logged_and_held(world, capsys) -> None:
    code, shown, _ = ask(capsys, "undo", "live/orders")
    assert (code, world.want(6), world.puts) == (0, "wait cooldown", 1)
    assert "would go back" in shown
    assert "nothing was done" in shown
    code, shown, _ = ask(capsys, "undo", "live/orders", "--yes", "--by", "ada", "--reason", "late", "since", "03:00")
    assert code == 0
    assert world.want(None, evaluates=False) == "roll_back undo"  # at the next tick, which is no evaluation
    assert world.want(6) == "confirm runs_as_requested"
    assert world.want(6) == "refuse on_hold"
    assert (world.job.requested, world.puts) == (BEFORE, 2)
    listed = ask(capsys, "hold", "hold", "--list")[1]
    assert "live/orders is on hold by ada: undo of step step-4: late since 03:00" in listed
    shown = ask(capsys, "log")[1]
    assert "live/orders: undo by ada" in shown
    assert "roll back: undo" in shown
    assert "ada takes the rescale of step step-4 back: late since 03:00" in shown
    assert ask(capsys, "undo", "live/orders")[0] == 2
    assert ask(capsys, "hold", "release", "live/orders")[0] == 0
    assert world.want(6) == "wait cooldown"  # the plan goes on as after every rescale


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda world: setattr(world.job, "requested", {"1" * 32: 3, "2" * 32: 3}), "somebody has changed it"),
        (lambda world: setattr(world.job, "job_id", "b" * 32), "deployed anew"),
    ],
)
def test_what_somebody_has_changed_is_not_undone(world, capsys, spoil, why: str) -> None:
    spoil(world)
    world.want(None)
    code, _, complaint = ask(capsys, "undo", "live/orders", "--yes")
    assert code == 2
    assert why in complaint
    assert world.puts == 1


def test_a_job_on_hold_is_not_undone(world, capsys) -> None:
    ask(capsys, "hold", "hold", "live/orders", "--by", "bob", "--force")
    code, _, complaint = ask(capsys, "undo", "live/orders", "--yes")
    assert code == 2
    assert "on hold by bob, and nothing is sent; first: tidewise release live/orders" in complaint


def test_a_hold_after_a_foreign_change_is_listed_and_released_as_any_other(world, capsys) -> None:
    world.job.requested = {"1" * 32: 3, "2" * 32: 3}
    assert [world.want(6), world.want(6)] == ["refuse foreign_change", "refuse held"]
    assert "live/orders is left alone: somebody else changed the job" in ask(capsys, "hold", "hold", "--list")[1]
    assert "Changed by somebody else" in ask(capsys, "status")[1]
    code, shown, _ = ask(capsys, "hold", "release", "live/orders", "--reason", "it was me")
    assert (code, "nothing is on hold" in shown) == (0, True)
    assert world.want(6) == "wait cooldown"
    assert "release by" in ask(capsys, "log", "live/orders")[1]
    assert "Changed by somebody else" not in ask(capsys, "status")[1]


def test_what_is_held_released_and_answered_is_in_the_log(world, capsys) -> None:
    ask(capsys, "hold", "hold", "live", "--by", "bob", "--reason", "a", "release")
    ask(capsys, "hold", "release", "live", "--by", "eve", "--reason", "done")
    shown = ask(capsys, "log")[1]
    assert "live: hold by bob: a release" in shown
    assert "live: release by eve: live, held by bob: a release; done" in shown
    acts = ask_json(capsys, "log")["acts"]
    assert [(one["act"], one["by"], one["scope"]) for one in acts] == [
        ("hold", "bob", "live"),
        ("release", "eve", "live"),
    ]
    assert "hold by bob" in " ".join(ask(capsys, "log", "live/orders")[1].split())  # it held this job, too


@pytest.mark.parametrize("command", ["plan", "quarantine"])
def test_an_empty_answer_is_a_sentence_and_valid_json(world, capsys, command: str) -> None:
    code, shown, _ = ask(capsys, command)
    assert (code, shown.count("\n")) == (0, 1)
    ask_json(capsys, command)


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["why", "live/order"], "write 'live/orders'"),
        (["undo", "live/order"], "write 'live/orders'"),
        (["why", "orders"], "expected cluster/job"),
        (["plan", "--hours", "0"], "expected a number above 0"),
        (["status", "--at", "soon"], "expected a time such as"),
    ],
)
def test_a_wrong_question_is_one_line_and_exit_code_2(world, capsys, argv: list[str], complaint: str) -> None:
    code, shown, reported = ask(capsys, *argv)
    assert (code, shown, reported.count("\n")) == (2, "", 1)
    assert complaint in reported


def test_a_step_that_waits_keeps_its_reason_and_says_which_yes_is_void(tmp_path, monkeypatch, capsys) -> None:
    with controlled_cluster(tmp_path, monkeypatch, mode="approve") as world:
        assert world.want(4, "a backlog of 543 s") == "wait needs_approval"
        (waiting,) = ask_json(capsys, "status")["waiting"]
        assert waiting["detail"].endswith("a backlog of 543 s; it waits for a person's yes")
        assert waiting["remedy"] == "tidewise approve live/orders step-4"
        assert ask(capsys, "approve", "live/orders", "step-4", "--by", "ada", "--reason", "go")[0] == 0
        assert world.want(8, "a backlog of 900 s") == "wait needs_approval"
        (waiting,) = ask_json(capsys, "status")["waiting"]
        assert "the yes of ada" in waiting["detail"]
        assert "was to 2 -> 4 slots and does not count for this" in waiting["detail"]
        assert "approve by ada" in ask(capsys, "log")[1]


HEAVY = (
    *("airflow", "fastapi", "jsonschema", "lightgbm", "matplotlib", "mlflow", "pandas", "pyspark"),
    *("scipy", "sklearn", "sqlalchemy"),
)
ANSWERS = (
    "status",
    "log",
    "log live/orders",
    "why live/orders",
    "plan",
    "quarantine",
    "hold --list",
    "release",
    "approve --list",
    "lift --list",
    "undo live/orders",
)
"""Commands on call for whose answer a person waits."""
STARTS = (
    *("lab.commands.advise", "lab.commands.backtest", "lab.commands.demo", "tools.record"),
    *("cli.airflow_cli", "cli.doctor.__main__", "cli.import_hours", "cli.init", "cli.install", "cli.maintain"),
    *("cli.manifests", "cli.page", "cli.run", "cli.ui"),
)
"""Modules of commands that say what they do before they load what it takes."""


def test_a_command_on_call_imports_nothing_heavy(world: ControlledCluster) -> None:
    """Each does its work, one after the other, in a process of their own, as make starts it."""
    code = (
        "import sys; from cli import console\n"
        f"for command in {ANSWERS!r}:\n"
        "    console.main(command.split())\n"
        f"    print(f'after {{command}}:', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROJECT)
    assert "live: 1 job (1 auto), 4 slots" in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("after ")] == [
        f"after {command}: []" for command in ANSWERS
    ]
    assert "Traceback" not in done.stderr


def test_a_long_command_loads_nothing_heavy_before_it_has_said_what_it_does() -> None:
    code = (
        "import importlib, sys\n"
        f"for name in {STARTS!r}: importlib.import_module(name)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROJECT)
    assert done.stdout == "[]\n"
