"""Bounds of wide jobs: what one slot after the other would give, without taking them one by one."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.control.bounds import bound_target
from models.control.limits import Limits
from models.control.partial_rise import grow_within
from models.control.state import ObservedJob

VERTICES = ["a", "b", "c", "d"]
COUNTS = st.fixed_dictionaries({vertex: st.integers(1, 9) for vertex in VERTICES})
GROUPS = st.fixed_dictionaries({vertex: st.sampled_from(["default", "own", "third"]) for vertex in VERTICES})
MOST = st.dictionaries(st.sampled_from(VERTICES), st.integers(1, 12), max_size=4)


def raise_one_by_one(wanted, observed: ObservedJob, lowest: int) -> dict[str, int]:
    raised = dict(wanted)
    while observed.slots_of(raised) < lowest:
        groups: dict[str, list[str]] = {}
        for vertex in raised:
            groups.setdefault(observed.slot_sharing_group[vertex], []).append(vertex)
        chosen: list[str] = []
        for _, vertices in sorted(groups.items()):
            free = [one for one in vertices if raised[one] < observed.max_parallelism.get(one, math.inf)]
            largest = [one for one in free if raised[one] == max(raised[two] for two in free)]
            if largest and (not chosen or raised[largest[0]] > raised[chosen[0]]):
                chosen = largest
        if not chosen:
            break
        for vertex in chosen:
            raised[vertex] += 1
    return raised


def grow_one_by_one(now, wanted, observed: ObservedJob, slots: int) -> dict[str, int]:
    part = dict(now)
    open_ = {vertex for vertex in part if part[vertex] < wanted[vertex]}
    while open_:
        vertex = max(sorted(open_), key=lambda one: wanted[one] / part[one])
        part[vertex] += 1
        if observed.slots_of(part) > slots:
            part[vertex] -= 1
            open_.discard(vertex)
        elif part[vertex] >= wanted[vertex]:
            open_.discard(vertex)
    return part


def capped(wanted, observed: ObservedJob, highest: int) -> dict[str, int]:
    caps = range(max(wanted.values()), 0, -1)
    made = ({vertex: min(count, cap) for vertex, count in wanted.items()} for cap in caps)
    return next((one for one in made if observed.slots_of(one) <= highest), dict.fromkeys(wanted, 1))


@given(now=COUNTS, wanted=COUNTS, groups=GROUPS, most=MOST, lowest=st.integers(1, 40), highest=st.integers(1, 40))
def test_bounds_are_those_of_one_slot_after_the_other(now, wanted, groups, most, lowest, highest) -> None:
    observed = ObservedJob("j", "RUNNING", now, now, most, groups)
    within = {vertex: min(count, most.get(vertex, count)) for vertex, count in wanted.items()}
    expected = raise_one_by_one(capped(within, observed, highest), observed, min(lowest, highest))
    assert bound_target(wanted, observed, Limits(slots_min=lowest, slots_max=highest)) == expected


@given(now=COUNTS, wanted=COUNTS, groups=GROUPS, slots=st.integers(1, 40))
def test_a_part_of_a_rise_is_that_of_one_subtask_after_the_other(now, wanted, groups, slots) -> None:
    observed = ObservedJob("j", "RUNNING", now, now, {}, groups)
    assert grow_within(now, wanted, observed, slots) == grow_one_by_one(now, wanted, observed, slots)


@pytest.mark.covers("harm slow-decision")
def test_a_job_of_500_operators_is_bounded_at_once() -> None:
    names = [f"operator-{number:03}" for number in range(500)]
    now = dict.fromkeys(names, 4)
    most = {name: 20 + number % 40 for number, name in enumerate(names[:200])}
    for groups in ({}, {name: f"group-{number % 100}" for number, name in enumerate(names)}):
        observed = ObservedJob("j", "RUNNING", now, now, most, groups)
        began = time.process_time()
        target = bound_target(dict.fromkeys(names, 32_000), observed, Limits(slots_min=6000, slots_max=9000))
        assert 6000 <= observed.slots_of(target) <= 9000
        raised = bound_target(now, observed, Limits(slots_min=6000, slots_max=9000))
        assert observed.slots_of(raised) >= 6000
        assert time.process_time() - began < 1.0
