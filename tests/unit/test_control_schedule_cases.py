"""A job that is outside of its schedule is brought within, by what is on and by nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from control_entries import FOUR, NOW_S, TWO, plain_case

from models.control.limits import Limits
from models.control.schedules import keep_schedule
from models.control.state import Intention, ObservedJob, Origin

RUNS = ObservedJob("j", "RUNNING", TWO, TWO, free_slots=8)
ON = Limits(slots_min=4, schedule_reason="schedule night: at least 4 slots until 06:00")


def test_what_is_asked_for_is_brought_within_a_schedule_that_is_on() -> None:
    expected = Intention(FOUR, Origin.SCHEDULE, "schedule", ON.schedule_reason, NOW_S + 3600)
    assert keep_schedule(plain_case(observed=RUNS, limits=ON)) == expected


@pytest.mark.parametrize(
    ("observed", "limits"),
    [
        (RUNS, replace(ON, schedule_reason="")),
        (replace(RUNS, running=FOUR, requested=FOUR), ON),
        (replace(RUNS, requested=None), ON),
    ],
    ids=["limits alone move no job", "it is within", "nobody knows what is asked for"],
)
def test_nothing_is_wanted_of_a_job(observed: ObservedJob, limits: Limits) -> None:
    assert keep_schedule(plain_case(observed=observed, limits=limits)) is None
