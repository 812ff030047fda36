"""Head-room, waiting scale-downs and catch-up, which operators add to the papers' policies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from include.domain.graph import JobGraph, Operator
from lab.policies.conttune.conttune_options import ContTuneOptions
from lab.policies.conttune.tuning_loop import TuningMemory, TuningStep, advance
from lab.policies.delayed_fall import Recommended, delay_fall
from lab.policies.dhalion.rules import scale_up
from lab.policies.ds2.ds2_memory import ManagerState
from lab.policies.ds2.ds2_options import ManagerOptions
from lab.policies.ds2.ds2_policy import interval_of
from lab.policies.ds2.scaling_manager import advance as advance_ds2
from models.policies.memory import dump, load
from models.policies.observations import MEASURES, Observations
from models.policies.tuning.reading import read_windows

GRAPH = JobGraph.from_operators([Operator("in"), Operator("work", ("in",))])
LIMITS = {"in": 64, "work": 64}


def windows(
    rate: float, at: int, *, count: int = 1, first: int = 0, waiting: float = 0.0, held_up: float = 0.0
) -> Observations:
    """`work` does 100 records/s per instance; NaN rates of arrival where the source is held up and shows no backlog."""
    emitted = min(rate, 100.0 * at)
    values = {name: np.full((count, 2), np.nan) for name in MEASURES}
    for name in ("processing_rate_per_s", "output_rate_per_s"):
        values[name][:] = emitted
    for name in ("true_processing_rate_per_s", "true_output_rate_per_s"):
        values[name][:] = [5000.0, 100.0 * at]
    values["target_data_rate_per_s"][:, 0] = np.nan if held_up else rate
    values["busy_share"][:] = [0.1, emitted / (100.0 * at)]
    values["backpressured_share"][:] = [held_up, 0.0]
    values["idle_share"][:] = [0.9 - held_up, 1.0 - emitted / (100.0 * at)]
    values["pending_records"][:, 0] = waiting
    return Observations(
        window_start_s=300 * np.arange(first, first + count),
        window_s=300,
        parallelism=np.tile([1, at], (count, 1)),
        disturbed=np.zeros(count, bool),
        **values,
    )


def conttune(
    options: ContTuneOptions, seen: Observations, at: int, memory: TuningMemory | None = None
) -> tuple[TuningStep, TuningMemory]:
    return advance(options, GRAPH, seen, {"in": 1, "work": at}, limits=LIMITS, memory=memory or TuningMemory())


def ds2(options: ManagerOptions, seen: Observations, at: int, state: ManagerState) -> tuple[int, ManagerState]:
    interval = interval_of(GRAPH, seen, len(seen) - 1, {"in": 1, "work": at})
    step, state = advance_ds2(replace(options, policy_interval_s=300.0), GRAPH, interval, state)
    return (at if step.parallelism is None else step.parallelism["work"]), state


def test_a_fall_goes_no_lower_than_what_was_recommended_within_the_delay() -> None:
    running, recent, remaining = {"a": 8, "b": 2}, (), []
    for now_s, a in ((0, 8), (600, 3), (1200, 5), (1800, 3), (2400, 3), (3600, 3)):
        wanted, recent = delay_fall(recent, now_s, running, {"a": a, "b": 4}, 1800)
        remaining.append(wanted["a"])
        assert wanted["b"] == 4  # a rise never waits
    assert remaining == [8, 8, 8, 5, 5, 3]
    assert delay_fall((Recommended(0, {"a": 9}),), 1, running, {"a": 1}, 0) == ({"a": 1}, ())


def test_the_first_recommendation_waits_for_the_whole_delay() -> None:
    wanted, recent = delay_fall((), 0, {"a": 8}, {"a": 2}, 600)
    assert wanted == {"a": 8}
    assert delay_fall(recent, 600, {"a": 8}, {"a": 2}, 600)[0] == {"a": 2}


@pytest.mark.parametrize(("headroom", "wanted"), [(0.0, 9), (0.2, 11), (1.0, 18)])
def test_conttune_with_head_room_asks_for_more(headroom: float, wanted: int) -> None:
    step, _ = conttune(ContTuneOptions(headroom=headroom), windows(900.0, 5), 5)
    assert (step.parallelism or {})["work"] == wanted


def test_conttune_works_a_backlog_off_where_it_is_told_to() -> None:
    step, _ = conttune(ContTuneOptions(catch_up_s=600.0), windows(900.0, 5, waiting=120_000.0), 5)
    assert (step.parallelism or {})["work"] == 11


def test_conttunes_scale_down_waits_and_its_memory_survives() -> None:
    options, memory, outcomes = ContTuneOptions(scale_down_delay_s=900.0), TuningMemory(), []
    for window in range(5):
        step, memory = conttune(options, windows(200.0, 10, first=window), 10, memory)
        outcomes.append(step.outcome)
        assert load(TuningMemory, dump(memory)) == memory
    assert outcomes == ["delayed", "delayed", "delayed", "small", "small"]


def test_conttune_decides_once_in_an_interval_from_all_its_windows() -> None:
    options = ContTuneOptions(interval_s=900.0)
    _, memory = conttune(options, windows(900.0, 10), 10)
    for count in (2, 3):
        step, memory = conttune(options, windows(900.0, 5, count=count), 5, memory)
        assert step == TuningStep("no window")
    step, memory = conttune(options, windows(900.0, 5, count=4), 5, memory)
    assert (step.parallelism or {})["work"] == 9
    assert memory.seen_until_s == 1200


def test_what_arrived_before_the_source_was_held_up_says_nothing_of_now() -> None:
    free, held = windows(450.0, 5), windows(900.0, 5, first=1, held_up=0.9)
    both = Observations(
        window_start_s=np.concatenate([free.window_start_s, held.window_start_s]),
        window_s=300,
        parallelism=np.concatenate([free.parallelism, held.parallelism]),
        disturbed=np.zeros(2, bool),
        **{name: np.concatenate([getattr(free, name), getattr(held, name)]) for name in MEASURES},
    )
    reading = read_windows(GRAPH, both, {"in": 1, "work": 5})
    assert reading is not None
    assert not reading.arrivals_known
    reading = read_windows(GRAPH, free, {"in": 1, "work": 5})
    assert reading is not None
    assert reading.arrivals_known


def test_ds2_works_a_backlog_off_and_lets_a_scale_down_wait() -> None:
    options = ManagerOptions(catch_up_s=600.0)
    assert ds2(options, windows(900.0, 5, waiting=120_000.0), 5, ManagerState())[0] == 11
    assert ds2(ManagerOptions(), windows(900.0, 5, waiting=120_000.0), 5, ManagerState())[0] == 9
    state, result = ManagerState(), []
    for window in range(4):
        wanted, state = ds2(ManagerOptions(scale_down_delay_s=900.0), windows(200.0, 10, first=window), 10, state)
        result.append(wanted)
        assert load(ManagerState, dump(state)) == state
    assert result == [10, 10, 10, 2]


def test_dhalion_with_head_room_asks_for_more() -> None:
    assert [scale_up(10, 0.5), scale_up(10, 0.5, 0.2)] == [20, 24]
