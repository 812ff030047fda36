"""DS2 as a policy: windows in, one schedule out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from situations import make_situation

from include.domain.graph import JobGraph, Operator
from include.settings import Planner
from lab.policies.ds2.ds2_memory import ManagerState
from lab.policies.ds2.ds2_options import Aggregation, ManagerOptions
from lab.policies.ds2.ds2_policy import Ds2
from models.bundle.job_models import JobModels, LatencyModel, RecoveryModel
from models.policies.memory import dump, load
from models.policies.observations import MEASURES, Observations
from models.policies.protocol import Schedule, Situation
from models.policies.registry import policy as policy_of
from models.scheduling.demand import SourceForecast

WORDS = JobGraph.from_operators([Operator("source"), Operator("split", ("source",)), Operator("count", ("split",))])
START_S, WINDOW_S = 1_800_000_000, 60
AT_ONCE = ManagerOptions()


def seen(at: dict[str, int], rate: float, windows: int = 1, *, first: int = 0, achieved: float = 1.0) -> Observations:
    """Dhalion's word count: 100K sentences per instance, 20 words each, 1M words per instance."""
    split, count = 1e5 * at["split"], 1e6 * at["count"]
    emitted = achieved * min(rate, split, count / 20)
    unknown = np.full((windows, 3), np.nan)
    rows = {name: unknown.copy() for name in MEASURES}
    rows["processing_rate_per_s"][:] = [emitted, emitted, 20 * emitted]
    rows["output_rate_per_s"][:] = [emitted, 20 * emitted, 0.0]
    rows["true_processing_rate_per_s"][:] = [np.nan, split, count]
    rows["true_output_rate_per_s"][:] = [np.nan, 20 * split, 0.0]
    rows["target_data_rate_per_s"][:, 0] = rate
    starts = START_S + WINDOW_S * np.arange(first, first + windows)
    parallelism = np.tile([at[name] for name in WORDS.names], (windows, 1))
    return Observations(
        window_start_s=starts, window_s=WINDOW_S, parallelism=parallelism, disturbed=np.zeros(windows, bool), **rows
    )


def situation(at: dict[str, int], observations: Observations, slots: int = 100) -> Situation:
    models = JobModels({}, dict.fromkeys(WORDS.names, 1.0), RecoveryModel(20, 2, 40, 4, 30, 5), NO_LATENCY)
    forecast = SourceForecast(START_S, 600, {"source": np.full((4, 144), 1e5)})
    return make_situation(START_S, WORDS, at, models, forecast, slots, Planner(), observations)


NO_LATENCY = LatencyModel(np.zeros(0), np.zeros(0))


def target(schedule: Schedule) -> dict[str, int]:
    (decision,) = schedule.decisions
    return dict(zip(schedule.operators, decision.step.parallelism_to.tolist(), strict=True))


def at(split: int, count: int) -> dict[str, int]:
    return {"source": 1, "split": split, "count": count}


def test_heron_is_sized_in_one_step_from_one_window() -> None:
    schedule, memory = Ds2(AT_ONCE).decide(situation(at(1, 1), seen(at(1, 1), 1e6)), ManagerState())
    assert target(schedule) == at(10, 20)
    assert schedule.decisions[0].reason == "DS2's true rates ask for another parallelism: split 1 -> 10, count 1 -> 20"
    assert memory.reconfigurations == 1
    assert memory.last_call_s == START_S + WINDOW_S


def test_a_window_is_used_once() -> None:
    policy, result = Ds2(AT_ONCE), situation(at(10, 20), seen(at(10, 20), 1e6))
    _, memory = policy.decide(result, ManagerState())
    schedule, again = policy.decide(result, memory)
    assert again == memory
    assert schedule.decisions[0].step.is_hold
    assert "no new undisturbed window" in schedule.decisions[0].reason


def test_only_the_latest_window_can_reconfigure_and_earlier_ones_count_towards_warm_up_and_activation() -> None:
    options = ManagerOptions(warm_up_intervals=2, activation_intervals=3, aggregation=Aggregation.MAX)
    reasons = []
    for windows in (1, 2, 3, 4, 5, 9):
        result = situation(at(1, 1), seen(at(1, 1), 1e6, windows))
        schedule, memory = Ds2(options).decide(result, ManagerState())
        reasons.append((schedule.decisions[0].reason.split()[1], memory.reconfigurations))
    assert reasons == [("ignores", 0), ("ignores", 0), ("waits", 0), ("waits", 0), ("true", 1), ("true", 1)]


def test_decisions_of_windows_that_came_in_together_are_aggregated() -> None:
    options = ManagerOptions(activation_intervals=2, aggregation=Aggregation.MAX)
    more, less = seen(at(5, 10), 1e6), seen(at(5, 10), 7e5, first=1)
    both = Observations(
        np.concatenate([more.window_start_s, less.window_start_s]),
        WINDOW_S,
        np.concatenate([more.parallelism, less.parallelism]),
        *(np.concatenate([getattr(more, name), getattr(less, name)]) for name in MEASURES),
        np.zeros(2, bool),
    )
    schedule, _ = Ds2(options).decide(situation(at(5, 10), both), ManagerState())
    assert target(schedule) == at(10, 20)


def test_disturbed_windows_and_those_of_another_parallelism_are_left_out() -> None:
    stale = seen(at(1, 1), 1e6, 3)
    schedule, memory = Ds2(AT_ONCE).decide(situation(at(2, 2), stale), ManagerState())
    assert schedule.decisions[0].step.is_hold
    assert memory == ManagerState()
    disturbed = replace(seen(at(1, 1), 1e6, 3), disturbed=np.ones(3, bool))
    assert Ds2(AT_ONCE).decide(situation(at(1, 1), disturbed), ManagerState())[1] == ManagerState()


def test_a_reconfiguration_that_made_the_job_worse_is_rolled_back_after_the_warm_up() -> None:
    policy = Ds2(ManagerOptions(warm_up_intervals=1))
    _, memory = policy.decide(situation(at(5, 10), seen(at(5, 10), 1e6, 2)), ManagerState())
    assert memory.action is not None
    worse = seen(at(10, 20), 1e6, first=2, achieved=0.3)
    schedule, memory = policy.decide(situation(at(10, 20), worse), memory)
    assert "ignores the first intervals" in schedule.decisions[0].reason
    worse = seen(at(10, 20), 1e6, first=3, achieved=0.3)
    schedule, memory = policy.decide(situation(at(10, 20), worse), memory)
    assert target(schedule) == at(5, 10)
    assert "rolls back" in schedule.decisions[0].reason
    back = seen(at(5, 10), 1e6, 3, first=4)
    schedule, memory = policy.decide(situation(at(5, 10), back), memory)
    assert "rolled back at this target rate" in schedule.decisions[0].reason
    assert memory.rejected == (at(10, 20),)


def test_slots_cut_a_decision_and_a_cut_one_is_not_repeated() -> None:
    policy = Ds2(AT_ONCE)
    schedule, memory = policy.decide(situation(at(1, 1), seen(at(1, 1), 1e6), slots=8), ManagerState())
    assert target(schedule) == at(8, 8)
    schedule, after = policy.decide(situation(at(8, 8), seen(at(8, 8), 1e6, first=1), slots=8), memory)
    assert schedule.decisions[0].step.is_hold
    assert after.reconfigurations == memory.reconfigurations == 1


def test_timely_gives_every_operator_the_rounded_sum() -> None:
    policy = policy_of("ds2_timely")
    running = dict.fromkeys(WORDS.names, 2)
    # 0.45 + 0.9 instances
    result = situation(running, seen(running, 4.5e4, 3))
    assert target(policy.decide(result, ManagerState())[0]) == running
    result = situation(running, seen(running, 1e5, 3))  # 1 + 2
    assert target(policy.decide(result, ManagerState())[0]) == dict.fromkeys(WORDS.names, 3)


ODD = st.sampled_from([0.0, np.nan, np.inf, 1e-300, 1e300]) | st.floats(0, 1e9)


@given(
    st.lists(st.lists(ODD, min_size=3 * len(MEASURES), max_size=3 * len(MEASURES)), max_size=3),
    st.lists(st.integers(0, 40), min_size=3, max_size=3),
    st.lists(st.integers(1, 30), min_size=3, max_size=3),
    st.booleans(),
)
def test_no_window_breaks_the_policy_and_every_schedule_is_feasible(
    rows: list[list[float]], shown: list[int], running: list[int], workers: bool
) -> None:
    windows = len(rows)
    values = np.array(rows, float).reshape(windows, len(MEASURES), 3)
    result = situation(
        dict(zip(WORDS.names, running, strict=True)),
        Observations(
            window_start_s=START_S + WINDOW_S * np.arange(windows),
            window_s=WINDOW_S,
            parallelism=np.tile([p if p == q else 0 for p, q in zip(shown, running, strict=True)], (windows, 1)),
            disturbed=np.zeros(windows, bool),
            **{name: values[:, place] for place, name in enumerate(MEASURES)},
        ),
        slots=30,
    )
    policy = Ds2(ManagerOptions(shared_workers=workers, target_rate_ratio=1.0))
    schedule, memory = policy.decide(result, policy.first_memory())
    assert all(1 <= count <= 30 for count in target(schedule).values())
    again, same = policy.decide(result, policy.first_memory())
    assert (target(again), dump(same)) == (target(schedule), dump(memory))
    assert dump(load(ManagerState, dump(memory))) == dump(memory)


@pytest.mark.parametrize("rate", [0.0, np.nan])
def test_an_idle_source_is_no_error(rate: float) -> None:
    schedule, _ = Ds2(AT_ONCE).decide(situation(at(3, 4), seen(at(3, 4), rate)), ManagerState())
    wanted = target(schedule)
    assert wanted == (at(1, 1) if rate == 0.0 else at(3, 4))


@pytest.mark.covers("apply_review 23")
def test_what_a_held_up_source_emits_is_not_its_target() -> None:
    """The job passes on 1e5 of the 1e6 records/s that arrive; without a known backlog nobody knows how many do."""
    windows = seen(at(1, 1), 1e6)
    unknown = np.full((1, 3), np.nan)
    shares = np.tile([0.98, 0.0, 0.0], (1, 1))
    held_up = replace(windows, target_data_rate_per_s=unknown, backpressured_share=shares)
    schedule, _ = Ds2(AT_ONCE).decide(situation(at(1, 1), held_up), ManagerState())
    assert target(schedule) == at(25, 50)  # free of backpressure for 2% of the time: it would emit 50 times as much
    free = replace(held_up, backpressured_share=np.tile([0.05, 0.0, 0.0], (1, 1)))
    _, memory = Ds2(AT_ONCE).decide(situation(at(1, 1), free), ManagerState())
    assert memory.last_call_s == START_S + WINDOW_S
