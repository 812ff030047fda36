"""Slots of a configuration: the largest parallelism of each slot-sharing group, in planning as in control."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.domain.graph import JobGraph, Operator
from include.domain.slots import count_slots
from lab.policies.planner.controller_memory import LowLoadPeriod
from lab.policies.planner.scale_down import update_low_loads
from models.control.state import ObservedJob
from models.scheduling.candidates import list_candidates
from models.scheduling.demand import LEVELS, Demand
from models.scheduling.even_shares import align_shares
from models.scheduling.need import CapacityBounds
from models.scheduling.slot_counts import count_slots_of_rows, widest_of_groups

NAMES = ("source", "map", "sink")
CHAIN = ({}, {"upstream": ("source",)}, {"upstream": ("map",)})


def chain(*groups: str, **options: int) -> JobGraph:
    return JobGraph.from_operators(
        [
            Operator(name, slot_sharing_group=group, **feeding, **options)  # type: ignore[arg-type]
            for name, feeding, group in zip(NAMES, CHAIN, groups, strict=True)
        ]
    )


@given(
    st.lists(st.tuples(st.integers(1, 50), st.sampled_from("abc")), min_size=1, max_size=8),
)
def test_planning_and_control_count_the_same(operators: list[tuple[int, str]]) -> None:
    counts = {f"o{place}": count for place, (count, _) in enumerate(operators)}
    groups = {f"o{place}": group for place, (_, group) in enumerate(operators)}
    graph = JobGraph.from_operators([Operator(name, slot_sharing_group=group) for name, group in groups.items()])
    row = np.array([counts[name] for name in graph.names])
    expected = count_slots(counts, groups)
    assert graph.slots_of(counts) == expected
    assert count_slots_of_rows(row, graph.slot_sharing_groups) == expected
    assert ObservedJob("j", "RUNNING", counts, counts, slot_sharing_group=groups).slots == expected


def test_rows_of_one_group_take_their_widest_operator() -> None:
    rows = np.array([[1, 5, 2], [4, 3, 3]])
    assert count_slots_of_rows(rows).tolist() == count_slots_of_rows(rows, ("g",) * 3).tolist() == [5, 4]
    assert count_slots_of_rows(np.zeros((0, 3), np.int64), ("a", "b", "b")).tolist() == []
    assert widest_of_groups(rows, ("a", "b", "b")).tolist() == [[1, 5, 5], [4, 3, 3]]


def test_groups_are_named_by_their_first_operator_since_flink_numbers_them_anew() -> None:
    assert chain("9f", "9f", "07") == chain("aa", "aa", "bb")
    assert chain("9f", "9f", "07").slot_sharing_groups == ("source", "source", "sink")
    assert chain("9f", "9f", "9f") == chain("default", "default", "default")


def demand_of(peak_per_s: float) -> Demand:
    load = np.full((len(LEVELS), 1), peak_per_s)
    return Demand(0, 600, NAMES, load, np.repeat(load[:, None], 3, axis=1))


BOUNDS = {name: CapacityBounds(100.0 * p, 40.0 * p, 100.0 * p) for name in NAMES for p in [np.arange(1.0, 33)]}


@pytest.mark.parametrize(("groups", "most"), [(("g", "g", "g"), 32), (("g", "g", "own"), 16), (("a", "b", "c"), 10)])
def test_candidates_of_several_groups_fit_together(groups: tuple[str, ...], most: int) -> None:
    """The widest candidate has all operators at ``most``: of two groups in 32 slots 16 each."""
    limits = np.full(3, 32)
    result = list_candidates(demand_of(6400.0), BOUNDS, np.ones(3, np.int64), limits, groups=groups, slots_max=32)
    assert result.max() == most
    assert count_slots_of_rows(result, groups).max() <= 32


def test_the_running_configuration_stays_a_candidate_however_many_slots_it_takes() -> None:
    running = np.full(3, 30)
    result = list_candidates(demand_of(6400.0), BOUNDS, running, np.full(3, 32), groups=("a", "b", "c"), slots_max=32)
    assert result[0].tolist() == [30, 30, 30]


def test_an_operator_is_aligned_within_its_own_group_only() -> None:
    def align(*groups: str) -> list[list[int]]:
        graph = chain(*groups).with_partitions({"source": 12})
        return align_shares(graph, np.array([[5, 9, 3]]), np.zeros(3, np.int64)).tolist()

    assert align("g", "g", "g") == [[6, 9, 3]]
    assert align("own", "g", "g") == [[5, 9, 3]]


def test_a_low_load_period_goes_by_the_slots_of_all_groups() -> None:
    def after(graph: JobGraph, need: Mapping[str, int]) -> list[int]:
        low = update_low_loads((LowLoadPeriod({"source": 4, "map": 4, "sink": 4}, 0),), need, 600, graph)
        return [one.since_s for one in low]

    need = {"source": 4, "map": 4, "sink": 2}
    assert after(chain("g", "g", "g"), need) == [0]  # as many slots as before: the period goes on
    assert after(chain("g", "g", "own"), need) == [0, 600]  # 6 instead of 8
