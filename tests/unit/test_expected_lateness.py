"""Expected late minutes of a path, and the sentence that a decision is explained with."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from models.programme.choice import ProgrammeDecision, describe_choice
from models.programme.expected_path import expect_path
from models.programme.horizon import spread_levels
from models.programme.problem import Problem
from models.programme.programme import solve_programme
from models.scheduling.figures import format_count, format_late
from tests.unit.test_programme import MIXED, TERMS, outlook, sizes

ROOT = Path(__file__).parents[2]
CHOICE = ProgrammeDecision(
    place=1,
    slots_from=23,
    slots_to=13,
    saved=2.5,
    saved_unit="slot-hours",
    other_slots=23,
    until_s=86_400,
    load_low_per_s=90e3,
    load_high_per_s=120e3,
    load_per_s=100e3,
    capacity_per_s=130e3,
    lasts_s=3 * 3600,
    late_minutes=3.2,
    stay_late_minutes=0.0,
    age_s=0.0,
    is_behind=False,
    path="",
    forecast_weight=0.0,
    forecast_missed=float("nan"),
    saved_slot_hours=30.0,
)


def expect(place: int, steps: int = 14, age_s: float = 0.0, load: float = 1e5, **changed: float) -> np.ndarray:
    levels, terms = spread_levels(outlook(load)), replace(TERMS, **changed)
    return expect_path(Problem(sizes(), levels, MIXED, terms), age_s, steps, lambda *_: place)[0]


def test_larger_sizes_are_late_for_fewer_minutes_and_none_for_longer_than_the_step() -> None:
    late = [expect(place) for place in range(1, len(sizes().slots))]
    totals = [float(one.sum()) for one in late]
    assert totals == sorted(totals, reverse=True)
    assert (np.array(late) <= 5.0 * np.array([1] * 8 + [2] * 5 + [4]) + 1e-9).all()
    assert late[0][-1] == pytest.approx(20.0)  # five slots for a load of ten


def test_with_room_only_failures_and_the_stop_of_a_rescale_make_late() -> None:
    calm = expect(0, load=2e4, failures_per_step=0.0)
    assert calm.sum() == pytest.approx(0.0, abs=1e-3)
    failing = expect(0, load=2e4)
    assert failing[0] * 288 == pytest.approx(100 / 60, rel=0.25)  # down for 125 s, read again from 35 s before
    assert expect(1, load=2e4, failures_per_step=0.0, rescale_s=120.0)[0] == pytest.approx(100 / 60, rel=0.05)


def test_lateness_is_expected_whatever_it_costs() -> None:
    assert expect(1, late_price=0.0).sum() > 100
    assert expect(1, age_s=600.0, load=2e4)[0] > expect(1, load=2e4)[0]


def test_what_makes_a_fall_right_later_is_expected_of_it() -> None:
    """A fall for an hour, before a rise that is expected: the rise is made in time, so little is late."""
    flat = outlook(2e4)
    rising = np.where(np.arange(len(flat.mean)) < 12, flat.mean, np.log(1e5 + flat.offset))
    solved, small = solve_programme(sizes(), spread_levels(replace(flat, mean=rising)), MIXED, 0.0, TERMS), 1
    problem = solved.problem
    stays, _ = expect_path(problem, 0.0, 14, lambda *_: small)
    late, path = expect_path(problem, 0.0, 14, lambda step, *runs: solved.decide(step, *runs) if step else small)
    assert sizes().slots[path[0]] < sizes().slots[path[-1]]
    assert stays.sum() > 30
    assert late.sum() < 5


def test_every_head_is_a_sentence_of_twelve_words_with_one_target() -> None:
    for place, to, late, is_behind in product((0, 1), (1, 13, 40), (0.0, 1.2, 900.0), (False, True)):
        choice = replace(CHOICE, place=place, slots_to=to, stay_late_minutes=late, is_behind=is_behind, age_s=4800.0)
        head, _, rest = describe_choice(choice, 0).partition("; ")
        assert len(head.split()) <= 12, head
        assert head.count("->") == place
        assert rest.count("->") == 0
        assert "1 slots" not in head
        assert "1 late minutes" not in describe_choice(choice, 0)


def test_a_decision_says_what_why_and_what_it_saves_or_prevents() -> None:
    assert describe_choice(CHOICE, 0) == (
        "23 -> 13 slots: load up to 120k/s, saves 30.0 slot-hours; 3 late minutes expected in 3 h, no late minute by "
        "staying; load of 90k to 120k/s for 2 h (level held); 13 slots carry 130k/s; staying costs 2.5 slot-hours more "
        "by 00:00 on 1970-01-02, late minutes and stops at their prices"
    )
    within = replace(CHOICE, saved_slot_hours=0.0)  # TaskManagers that other slots of the job need
    assert describe_choice(within, 0).startswith("23 -> 13 slots: load up to 120k/s, cheaper than staying; ")
    up = replace(CHOICE, slots_to=30, stay_late_minutes=15.0, saved_slot_hours=-21.0)
    assert describe_choice(up, 0).startswith("23 -> 30 slots: load up to 120k/s, prevents 12 late minutes; ")
    assert describe_choice(replace(up, is_behind=True, age_s=80.0), 0).startswith(
        "23 -> 30 slots to catch up: prevents 12 late minutes; "
    )
    stays = replace(CHOICE, place=0, slots_to=1)
    assert describe_choice(stays, 0).startswith("1 slot stays: load up to 120k/s; 3 late minutes expected in 3 h; ")
    assert "23 would cost 2.5 slot-hours more by " in describe_choice(stays, 0)


def test_no_text_counts_one_as_many() -> None:
    """A count and its noun are written by `format_count` or the filter `count`; 'n of m slots' is no such count."""
    counted = re.compile(r"(?<! of )(?<! of the )(?<! to )(?<!{){+[^{}]*}+ (?:jobs|slots|steps|things|limits)(?![-\w])")
    lines = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for folder in ("include", "models", "fleet", "page", "spark_jobs", "controller", "cli")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".py", ".j2"}
        for line in path.read_text("utf-8").splitlines()
        if counted.search(line)
    ]
    assert lines == []


def test_plural_of_one() -> None:
    assert [format_count(one, "slot") for one in (0, 1, 2)] == ["0 slots", "1 slot", "2 slots"]
    assert format_count(None, "slot") == "slots unknown"
    assert [format_late(one) for one in (0.0, 0.2, 0.7, 1.4, 14.4)] == [
        "no late minute",
        "less than 1 late minute",
        "1 late minute",
        "1 late minute",
        "14 late minutes",
    ]
