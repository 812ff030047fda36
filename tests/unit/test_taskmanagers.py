"""What is paid: whole TaskManagers, in the price of a size, its wait for slots, its reason, and what plans save."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from programme_line import noisy, run, snapshot, window

from include.domain.slots import count_paid
from lab.replay.hosted_driver import HostedDriver
from lab.replay.programme_forms import FORMS
from models.hosting.host import HostMemory, evaluate_hosted
from models.policies.tidewise.programme_policy import Programme
from models.programme.choice import ProgrammeDecision, describe_choice
from models.programme.problem import CostTerms
from models.scheduling.expectation import Expectation
from models.scheduling.rescale_timing import ScheduleStep

TERMS = CostTerms(0.01, 0.4, 0.4, 60.0, 30.0, 60.0, 60.0, 0.0, taskmanager_slots=4)


def test_whole_taskmanagers_are_paid() -> None:
    slots = np.array([9.0, 8.0, 10.0, 12.0, 13.0])
    assert TERMS.count_paid(slots).tolist() == [12, 8, 12, 12, 16]
    assert replace(TERMS, taskmanager_slots=1).count_paid(slots).tolist() == slots.tolist()
    assert [count_paid(slots, 8) for slots in (1, 8, 9)] == [8, 8, 16]


@pytest.mark.parametrize("load", [4400.0, 5300.0, 6200.0])
def test_a_size_fills_its_taskmanagers(load: float) -> None:
    """Of sizes that cost the same, the widest is the least late."""
    alone, _ = run(noisy(load), (16, 16, 16))
    whole, _ = run(noisy(load), (16, 16, 16), taskmanager_slots=4)
    assert alone.wanted is not None
    assert whole.wanted is not None
    assert alone.wanted["map"] % 4
    assert whole.wanted["map"] == 8
    assert f"saves {8 * 110 / 60:.1f} slot-hours" in whole.reason


def test_a_reason_counts_the_slots_that_are_given_up() -> None:
    values: dict[str, Any] = dict.fromkeys(ProgrammeDecision.__dataclass_fields__, 0.0)
    values |= {"place": 1, "slots_from": 9, "slots_to": 8, "saved_unit": "slot-hours", "path": "", "event": ""}
    values |= {"lasts_s": 7200, "forecast_missed": float("nan"), "is_behind": False}
    assert "saves 8.0 slot-hours" in describe_choice(ProgrammeDecision(**values | {"saved_slot_hours": 8.0}), 0)
    assert "saves" not in describe_choice(ProgrammeDecision(**values | {"slots_from": 8, "slots_to": 7}), 0)


def test_savings_of_a_plan_are_those_of_whole_taskmanagers() -> None:
    """From 9 to 8 slots, a TaskManager of 4 is given up; from 8 to 7 none."""
    expected = Expectation(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0)

    def saved(before: int, after: int, per: int) -> float:
        counts = (np.array([before]), np.array([after]))
        return ScheduleStep(0, 0, 3600, *counts, 0, 0, expected, taskmanager_slots=per).slot_hours_saved

    assert [saved(9, 8, 4), saved(8, 7, 4), saved(9, 8, 1)] == [4.0, 0.0, 1.0]


def test_a_form_that_is_not_told_pays_slots_one_by_one() -> None:
    rows = [window(at, load, (16, 16, 16)) for at, load in enumerate(noisy(5300.0))]
    job = snapshot(rows, (16, 16, 16), taskmanager_slots=4)
    wanted = {}
    for name in ("programme_not_told", "programme"):
        driver = FORMS.get(name) or HostedDriver.of(name, Programme())
        decision, _ = evaluate_hosted(driver.hosted, HostMemory(), job.now_s, job, None)
        assert decision.wanted is not None
        wanted[name] = decision.wanted["map"] % 4
    assert wanted["programme"] == 0
    assert wanted["programme_not_told"] > 0
