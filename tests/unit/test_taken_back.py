"""Falls that were a loss: what they saved against what taking them back cost."""

from __future__ import annotations

from dataclasses import replace

from models.policies.tidewise.taken_back import ScaleDownRecord
from models.programme.choice import ProgrammeDecision
from models.programme.problem import CostTerms

TERMS = CostTerms(0.2 / 32, 0.4, 0.46, 60.0, 40.0, 60.0, 30.0, 1 / 288)
CHOICE = ProgrammeDecision(
    *(0, 8, 8, 0.0, "slot-hours", 8, 0, 0.0, 1.0, 1.0, 1.0, 7200, 0.0, 0.0, 0.0),
    is_behind=False,
    path="",
    forecast_weight=0.0,
    forecast_missed=float("nan"),
)


def follow(looks: list[tuple[int, int, float]], before: ScaleDownRecord | None = None) -> ScaleDownRecord:
    """Return what becomes of (minute, slots, age of the backlog) at evaluations."""
    state = before or ScaleDownRecord()
    for minute, slots, age_s in looks:
        state = state.follow(replace(CHOICE, slots_from=slots, age_s=age_s), TERMS, 60 * minute)
    return state


SQUARE = [(5, 32, 0.0), (10, 8, 0.0), (15, 8, 450.0)]
LATER = [(minute + 70, slots, age_s) for minute, slots, age_s in SQUARE]


def test_a_fall_that_is_taken_back_at_a_loss_pauses_falls_each_time_for_twice_as_long() -> None:
    once = follow(SQUARE)
    assert once.until_s == 60 * 15 + 3600
    assert "no" not in once.describe(60 * 80)
    assert once.describe(60 * 20) == "; the last fall was a loss, so the high load of 6 h is carried until 01:15"
    assert follow(LATER, once).until_s == 60 * 85 + 7200


def test_a_fall_that_lasts_an_hour_ends_it() -> None:
    once = follow(SQUARE)
    lasting = [(100, 32, 0.0), (105, 8, 0.0), *((105 + 5 * one, 8, 0.0) for one in range(1, 14))]
    assert follow(lasting, once).pause_s == 0
    assert follow(lasting, once).describe(60 * 170) == ""


def test_many_small_losses_are_one_large_one_and_a_fall_that_saves_is_none() -> None:
    waves = [(10 * one + 5 * is_low, 8 - is_low, 0.0) for one in range(1, 8) for is_low in (0, 1)]
    assert follow(waves[:5]).until_s == 0
    assert follow(waves).until_s > 0
    saving = [(0, 32, 0.0), (5, 2, 0.0), *((5 + 5 * one, 2, 0.0) for one in range(1, 10)), (55, 32, 61.0)]
    assert follow(saving).until_s == 0


def test_within_a_pause_nothing_is_counted() -> None:
    once = follow(SQUARE)
    assert follow([(20, 32, 0.0), (25, 24, 0.0), (30, 24, 500.0)], once).until_s == once.until_s
