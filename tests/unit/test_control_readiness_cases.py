"""Checkpoints and memory before a request, in single cases: what forbids it, what does not, and what is said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from control_entries import FOUR, NOW_S, TWO, plain_case

from models.control.case import Action, Verb
from models.control.limits import Limits
from models.control.readiness import Checkpoints, Guards, MemoryUsage, Readiness
from models.control.reconcile import reconcile
from models.control.state import Intention, Mode, ObservedJob, Origin

ONE = {"a": 1, "b": 1}
OLD, RECENT, FRESH = (Checkpoints(60.0, NOW_S - age_s, state_bytes=1) for age_s in (3600, 60, 5))
RUNS = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8)
RESTARTS = replace(RUNS, state="RESTARTING", running={})
ASKS = {"waits_for_checkpoint": False}  # Flink before 1.20


def decide(
    ready: Readiness,
    origin: Origin = Origin.PLAN,
    target: dict[str, int] = FOUR,
    observed: ObservedJob = RUNS,
    guards: Guards | None = None,
) -> Action:
    desired = Intention(target, origin, "step-1", "load changes", NOW_S + 600)
    limits = Limits(mode=Mode.AUTO, guards=guards or Guards())
    return reconcile(plain_case(desired=desired, observed=replace(observed, readiness=ready), limits=limits))


@pytest.mark.parametrize(
    ("origin", "target", "reason"),
    [
        (Origin.REACTIVE, FOUR, "reactive"),
        (Origin.REACTIVE, ONE, "checkpoint_too_old"),
        (Origin.PLAN, FOUR, "checkpoint_too_old"),
        (Origin.PLAN, ONE, "checkpoint_too_old"),
    ],
)
def test_a_rise_for_an_overload_alone_goes_on_with_an_old_checkpoint(
    origin: Origin, target: dict[str, int], reason: str
) -> None:
    assert decide(Readiness(OLD, MemoryUsage(0.1, 0.1)), origin, target).reason == reason


@pytest.mark.parametrize(
    ("checkpoints", "doubt"),
    [
        (RECENT, ""),
        (OLD, "; it is overloaded, so it is enlarged although the last completed checkpoint is 3600 s old, more than"),
        (replace(RECENT, is_failing=True), "; it is overloaded, so it is enlarged although checkpoints fail: the last"),
    ],
)
def test_a_rise_for_an_overload_says_what_is_wrong_with_the_checkpoints(checkpoints: Checkpoints, doubt: str) -> None:
    detail = decide(Readiness(checkpoints), Origin.REACTIVE).detail
    assert detail.startswith(f"load changes{doubt}")
    assert ("overloaded" in detail) is bool(doubt)


def test_what_restarts_no_job_needs_no_checkpoint_and_is_not_called_an_overload() -> None:
    action = decide(Readiness(OLD, restarts=False))
    assert (action.verb, action.detail) == (Verb.RESCALE, "load changes")


def test_a_job_that_restarts_goes_back_to_its_last_checkpoint_anyway() -> None:
    """No other is asked for first, though this Flink does not wait for one by itself."""
    ready = Readiness(RECENT, **ASKS)
    assert decide(ready, Origin.REACTIVE).reason == "checkpoint_first"
    assert decide(ready, Origin.REACTIVE, observed=RESTARTS).reason == "reactive"


@pytest.mark.parametrize(
    ("ready", "guards", "reason"),
    [
        (Readiness(RECENT, **ASKS), Guards(), "checkpoint_first"),
        (Readiness(FRESH, **ASKS), Guards(), "plan"),
        (Readiness(RECENT, **ASKS), Guards(triggers_checkpoint=False), "plan"),
        (Readiness(RECENT), Guards(), "plan"),
        (Readiness(RECENT, **ASKS, is_fresh=True), Guards(), "plan"),
    ],
    ids=["asked for", "one of seconds ago", "switched off", "Flink waits itself", "completed since"],
)
def test_a_checkpoint_is_asked_for_where_the_last_is_not_of_just_now(
    ready: Readiness, guards: Guards, reason: str
) -> None:
    assert decide(ready, guards=guards).reason == reason


FULL, COLLECTS, SILENT = MemoryUsage(0.95, 0.1), MemoryUsage(0.5, 0.9), MemoryUsage(0.5, None)
NO_COLLECTION = Guards(gc_share_max=1.0)


@pytest.mark.parametrize(
    ("ready", "guards", "reason"),
    [
        (Readiness(RECENT, FULL), Guards(), "heap_full"),
        (Readiness(RECENT, FULL), NO_COLLECTION, "heap_full"),
        (Readiness(RECENT, FULL), Guards(heap_share_max=1.0), "plan"),
        (Readiness(RECENT, COLLECTS), Guards(), "gc_pressure"),
        (Readiness(RECENT, COLLECTS), NO_COLLECTION, "plan"),
        (Readiness(RECENT, SILENT), Guards(), "memory_unknown"),
        (Readiness(RECENT, SILENT), NO_COLLECTION, "plan"),
        (Readiness(RECENT, SILENT, tells_gc=False), Guards(), "plan"),
        (Readiness(replace(RECENT, state_bytes=None), MemoryUsage(0.5, 0.1)), Guards(), "memory_unknown"),
        (Readiness(RECENT, FULL, restarts=False), Guards(), "plan"),
    ],
)
def test_slots_are_given_back_where_what_is_asked_of_the_memory_allows_it(
    ready: Readiness, guards: Guards, reason: str
) -> None:
    """What restarts no job, and a share of one, ask nothing; the time of garbage collection may lack in old Flinks."""
    assert decide(ready, target=ONE, guards=guards).reason == reason


def test_a_fall_says_why_nobody_knows_the_memory() -> None:
    assert decide(Readiness(RECENT, unknown="no reply"), target=ONE).detail.endswith("memory: no reply")
    assert decide(Readiness(RECENT, SILENT), target=ONE).detail.endswith("memory: no time of garbage collection")
