"""The look of the DAGs without Spark: what is worth looking at, and how its memory meets the plan's."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from include.control import watching
from include.flink.raw_format import hour_directory
from include.settings import Apply, Cluster, Paths, Planner, Settings
from models.policies.conttune.capacity_history import ObservedCapacity
from models.policies.memory import dump, load
from models.policies.tidewise.pending_steps import PendingStep
from models.policies.tidewise.reactive_controller import decide_without_windows
from models.policies.tidewise.tidewise_memory import ControllerMemory
from spark_jobs.watch.job import JobView, WatchTask, look_row, memory_of

NOW = datetime(2026, 11, 20, 18, 5, tzinfo=UTC)
NOW_S = int(NOW.timestamp())
PLANNED_S = NOW_S - 600
RUNNING = {"source": 1, "map": 4}
FALL = PendingStep(NOW_S - 300, NOW_S + 3600, {"source": 1, "map": 2}, 1000.0, "as forecast")
LATER = replace(FALL, apply_at_s=NOW_S + 600)
OPERATORS: list[dict[str, Any]] = [
    {"operator": "source", "upstream": [], "parallelism": 1, "max_parallelism": 128},
    {"operator": "map", "upstream": ["source"], "parallelism": 4, "max_parallelism": 128},
]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("TIDEWISE_SETTINGS", str(tmp_path / "none.toml"))
    return Settings(paths=Paths(raw=str(tmp_path / "raw"), out=str(tmp_path / "out")))


def written(settings: Settings, ago: timedelta, hour: datetime = NOW) -> None:
    path = hour_directory(Path(settings.paths.raw), "c", hour) / "poll.jsonl.gz"
    path.parent.mkdir(parents=True)
    path.touch()
    os.utime(path, (NOW.timestamp() - ago.total_seconds(),) * 2)


@pytest.mark.parametrize(
    ("ago_s", "hour", "worth"),
    [
        (60, NOW, True),
        (60, NOW - timedelta(hours=1), True),  # the last poll of the hour before is minutes old
        (60, NOW - timedelta(hours=3), False),  # files of another hour were copied: a backfill
        (3600, NOW, False),  # nobody collects any more
        (-60, NOW, False),  # a recording that was put there after the moment from which is looked
    ],
)
def test_fresh_raw_files_are_worth_a_look(settings: Settings, ago_s: int, hour: datetime, worth: bool) -> None:
    written(settings, timedelta(seconds=ago_s), hour)
    assert watching.something_to_watch(settings, NOW) is worth
    off = settings.model_copy(update={"apply": Apply(watch=False)})
    other = settings.model_copy(update={"planner": Planner(policy="ds2")})
    assert not watching.something_to_watch(off, NOW)
    assert not watching.something_to_watch(other, NOW)


def test_nothing_is_worth_a_look_where_nothing_was_collected(settings: Settings) -> None:
    assert not watching.something_to_watch(settings, NOW)
    bucket = settings.model_copy(update={"paths": settings.paths.model_copy(update={"raw": "s3a://bucket/raw"})})
    assert not watching.something_to_watch(bucket, NOW)
    polled = bucket.model_copy(update={"clusters": {"c": Cluster(rest_url="http://flink:8081")}})
    assert watching.something_to_watch(polled, NOW)


def test_what_a_look_released_counts_for_its_moment_only(settings: Settings) -> None:
    assert watching.released(settings, NOW)  # unknown: the tables decide
    watching.write_looked(settings, NOW, 2)
    assert watching.released(settings, NOW)
    assert not watching.released(settings, NOW + timedelta(minutes=5))
    watching.write_looked(settings, NOW, 0)
    assert not watching.released(settings, NOW)
    watching.remove_looked(settings)
    assert watching.released(settings, NOW)


def task(settings: Settings) -> WatchTask:
    return WatchTask(settings, NOW, None)


def view(**known: Any) -> JobView:
    return JobView("c", "orders", "a" * 32, OPERATORS, **known)


def planned(*due: PendingStep, **known: Any) -> dict[str, Any]:
    return {"plan_as_of_s": PLANNED_S, "plan_memory": dump(ControllerMemory(due=due, planned=True, **known))}


def looked(memory: ControllerMemory, plan_as_of_s: int) -> dict[str, Any]:
    return {"look_memory": dump(memory), "look_plan_as_of_s": plan_as_of_s}


def test_a_newer_plan_is_accepted_once_and_a_hold_outlives_it(settings: Settings) -> None:
    before = ControllerMemory(due=(FALL,), planned=True, held_until_s=NOW_S + 60, back_to=RUNNING)
    met = memory_of(task(settings), view(**planned(LATER), **looked(before, PLANNED_S - 3600)))
    assert (met.due, met.back_to, met.held_until_s) == ((LATER,), None, NOW_S + 60)
    gone = replace(before, due=())  # the step was sent: the same plan does not bring it back
    assert memory_of(task(settings), view(**planned(FALL), **looked(gone, PLANNED_S))) == gone


def test_what_ingestion_has_seen_and_the_looks_have_not_is_learnt_from_the_plan(settings: Settings) -> None:
    histories = {"map": (ObservedCapacity(4, (400.0,)),)}
    of_plan = planned(seen_until_s=900.0, histories=histories)
    met = memory_of(task(settings), view(**of_plan, **looked(ControllerMemory(seen_until_s=300.0), 0)))
    assert (met.seen_until_s, dict(met.histories)) == (900.0, histories)
    later = looked(ControllerMemory(seen_until_s=1200.0), 0)
    assert memory_of(task(settings), view(**of_plan, **later)).histories == {}


@pytest.mark.parametrize(
    "plan",
    [
        {},  # never planned for
        {"plan_as_of_s": PLANNED_S},  # refused: it left no memory
        {"plan_as_of_s": PLANNED_S, "plan_memory": dump(ControllerMemory(planned=False))},  # no season in the history
        planned(FALL) | {"plan_as_of_s": NOW_S - 3 * 3600},  # too old to be applied
    ],
)
def test_without_a_usable_plan_the_job_is_steered_by_what_is_seen(settings: Settings, plan: dict[str, Any]) -> None:
    before = ControllerMemory(due=(FALL,), planned=True, seen_until_s=3.0)
    met = memory_of(task(settings), view(**plan, **looked(before, PLANNED_S)))
    assert (met.due, met.planned, met.seen_until_s) == ((), False, 3.0)


def test_of_a_job_that_is_not_seen_the_due_step_goes_out_and_says_so(settings: Settings) -> None:
    steps = ({"step_id": "s1", "apply_at_s": FALL.apply_at_s, "parallelism_to": dict(FALL.parallelism)},)
    row = look_row(task(settings), view(**planned(FALL, LATER), steps=steps))
    assert (row["decision"], row["step_id"], row["seen"]) == ("due", "s1", False)
    assert "nothing was seen" in row["reason"]
    assert load(ControllerMemory, row["memory"]).due == (LATER,)
    told, memory = decide_without_windows(ControllerMemory(due=(replace(FALL, valid_until_s=NOW_S),)), NOW_S)
    assert (told.wanted, memory.due) == (None, ())


def test_a_look_that_fails_holds_no_step_back(settings: Settings) -> None:
    seen = {"polled_at_s": NOW_S - 10, "state": "RUNNING", "running": RUNNING, "windows": "no JSON"}
    row = look_row(task(settings), view(**planned(), **seen))
    assert (row["decision"], row["seen"]) == ("wait", False)
    assert "the evaluation failed (" in row["reason"]


@pytest.mark.parametrize("changes", [{"polled_at_s": NOW_S - 1200}, {"running": {"source": 1, "other": 4}}])
def test_metrics_that_are_old_or_of_another_graph_are_not_looked_at(
    settings: Settings, changes: dict[str, Any]
) -> None:
    seen = {"polled_at_s": NOW_S - 10, "state": "RUNNING", "running": RUNNING} | changes
    assert look_row(task(settings), view(**planned(), **seen))["seen"] is False


def test_the_way_back_from_what_was_never_sent_is_no_step(settings: Settings) -> None:
    # In a dry run the job still runs as before the backlog for which it would have been enlarged.
    before = ControllerMemory(planned=True, back_to=RUNNING)
    seen = {"polled_at_s": NOW_S - 10, "state": "RUNNING", "running": RUNNING}
    row = look_row(task(settings), view(**planned(), **looked(before, PLANNED_S), **seen))
    assert (row["decision"], row["seen"], row.get("step_id")) == ("wait", True, None)
