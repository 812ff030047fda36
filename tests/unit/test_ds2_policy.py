"""DS2's optimum, the small rules around it, and its scaling manager on a simulated job."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.domain.graph import GraphError, JobGraph, Operator
from lab.policies.ds2.adjust import (
    MAX_PARALLELISM,
    aggregate,
    is_significant,
    over_provision,
    rate_ratio,
    scale_to_target,
)
from lab.policies.ds2.ds2_memory import ManagerState
from lab.policies.ds2.ds2_options import Aggregation, ManagerOptions
from lab.policies.ds2.optimum import OperatorRates, optimum, source_target
from lab.policies.ds2.scaling_manager import ManagerDecision, PolicyInterval, advance
from models.policies.memory import dump, load

WORDS = JobGraph.from_operators([Operator("source"), Operator("split", ("source",)), Operator("count", ("split",))])


def heron(split: int, count: int, rate: float = 1e6) -> dict[str, OperatorRates]:
    """Dhalion's word count: 100K sentences per instance, 20 words each, 1M words per instance."""
    return {
        "source": OperatorRates(1, 0.0, rate),
        "split": OperatorRates(split, 1e5 * split, 2e6 * split),
        "count": OperatorRates(count, 1e6 * count, 0.0),
    }


@pytest.mark.parametrize("start", [(1, 1), (22, 30), (10, 20), (3, 50)])
def test_herons_word_count_is_found_in_one_step_from_anywhere(start: tuple[int, int]) -> None:
    result = optimum(WORDS, heron(*start))
    assert result.parallelism == {"source": 1, "split": 10, "count": 20}
    assert result.target_per_s == {"source": 0.0, "split": 1e6, "count": 2e7}
    assert (result.timely_workers, result.timely_workers_raw) == (30, pytest.approx(30.0))


def test_timely_rounds_the_sum_only() -> None:
    """0.4 + 0.8 instances are two workers where every worker runs everything; apart they are one and one."""
    result = optimum(WORDS, heron(1, 1, 4e4))
    assert dict(result.raw) == pytest.approx({"split": 0.4, "count": 0.8})
    assert result.timely_workers == 2
    assert result.parallelism == {"source": 1, "split": 1, "count": 1}


def test_source_target_is_per_instance_or_what_is_emitted() -> None:
    assert source_target(9.0, per_instance_per_s=70_000.0, instances=6) == 420_000.0
    assert source_target(9.0, per_instance_per_s=-1, instances=6) == 9.0


def test_operators_that_never_worked_keep_their_parallelism() -> None:
    rates = {**heron(3, 4), "split": OperatorRates(3, math.nan, math.nan)}
    result = optimum(WORDS, rates)
    assert result.parallelism == {"source": 1, "split": 3, "count": 4}
    assert math.isnan(result.raw["split"])
    assert result.timely_workers == 1
    with pytest.raises(GraphError, match=r"no rates for \['count'\]"):
        optimum(WORDS, {name: one for name, one in heron(1, 1).items() if name != "count"})


ODD = st.sampled_from([0.0, math.nan, math.inf, 1e-300, 1e300]) | st.floats(0, 1e9)


@given(st.tuples(*[st.tuples(st.integers(1, 200), ODD, ODD)] * 3), st.floats(0, 5))
def test_no_rate_breaks_the_optimum(rows: tuple[tuple[int, float, float], ...], factor: float) -> None:
    rates = {name: OperatorRates(*row) for name, row in zip(WORDS.names, rows, strict=True)}
    result = optimum(WORDS, rates, scaling_factor=factor)
    assert all(1 <= count <= MAX_PARALLELISM for count in result.parallelism.values())
    assert result.parallelism["source"] == rates["source"].parallelism
    assert result.timely_workers >= 1
    assert optimum(WORDS, rates, scaling_factor=factor).parallelism == result.parallelism


@given(st.integers(1, 60), st.integers(1, 60), st.floats(1e3, 1e8))
def test_linear_scaling_needs_one_step_and_never_over_or_undershoots(split: int, count: int, rate: float) -> None:
    once = optimum(WORDS, heron(split, count, rate)).parallelism
    again = optimum(WORDS, heron(once["split"], once["count"], rate)).parallelism
    assert again == once
    assert (once["split"] - 1) * 1e5 < rate <= once["split"] * 1e5 * (1 + 1e-8)


def test_significance_follows_the_code_and_its_tolerances() -> None:
    at = {"a": 5, "b": 5}
    assert [is_significant(at, {"a": asked, "b": 5}) for asked in (3, 4, 5, 6)] == [True, False, False, True]
    assert [is_significant(at, {"a": asked, "b": 5}, up=2, down=2) for asked in (2, 3, 7, 8)] == [
        True,
        False,
        False,
        True,
    ]


def test_decisions_of_several_intervals() -> None:
    decisions = [{"a": 4, "b": 9}, {"a": 8, "b": 1}, {"a": 5, "b": 2}]
    assert aggregate(decisions, Aggregation.LAST) == {"a": 5, "b": 2}
    assert aggregate(decisions, Aggregation.MAX) == {"a": 8, "b": 9}
    assert aggregate(decisions, Aggregation.MEDIAN) == {"a": 5, "b": 2}
    assert aggregate(decisions[:2], Aggregation.MEDIAN) == {"a": 6, "b": 5}


def test_over_provisioning_as_in_espa() -> None:
    for count, factor, wanted in [(100, 1, 100), (4, 1.2, 5), (5, 1.2, 6), (6, 1.2, 8), (100, 2.000001, 201)]:
        assert over_provision({"a": count}, factor) == {"a": wanted}
    assert [over_provision({"a": count}, 1.25)["a"] for count in range(1, 8)] == [2, 3, 4, 5, 7, 8, 9]


def test_target_rate_ratio_raises_everything_when_the_policy_sees_no_need() -> None:
    assert rate_ratio({"s": 120.0, "t": 50.0}, {"s": 100.0, "t": 50.0}) == 1.2
    assert rate_ratio({"s": 120.0}, {"s": 0.0}) == 1.0
    at = {"source": 1, "split": 10, "count": 20}
    assert scale_to_target(at, at, 1.2, 1.0, fixed=["source"]) == {"source": 1, "split": 12, "count": 24}
    assert scale_to_target(at, at, 1.2, 1.3) == at
    scaled_up = {**at, "split": 11}
    assert scale_to_target(at, scaled_up, 1.2, 1.0) == scaled_up


class Job:
    """A word count whose instances get slower the more there are: PA(p) = g p / (1 + a (p - 1))."""

    def __init__(self, split: int, count: int, rate: float, drag: float = 0.0) -> None:
        self.at = {"source": 1, "split": split, "count": count}
        self.rate, self.drag, self.now_s = rate, drag, 0.0

    def capacity(self, name: str) -> float:
        count = self.at[name]
        return {"split": 1e5, "count": 1e6}[name] * count / (1.0 + self.drag * (count - 1))

    def interval(self, seconds: float = 60.0) -> PolicyInterval:
        self.now_s += seconds
        split, count = self.capacity("split"), self.capacity("count")
        rates = {
            "source": OperatorRates(1, 0.0, self.rate),
            "split": OperatorRates(self.at["split"], split, 20 * split),
            "count": OperatorRates(self.at["count"], count, 0.0),
        }
        return PolicyInterval(self.now_s, rates, {"source": min(self.rate, split, count / 20)})

    def run(self, options: ManagerOptions, intervals: int, state: ManagerState | None = None) -> list[ManagerDecision]:
        self.state = ManagerState() if state is None else state
        steps = []
        for _ in range(intervals):
            step, self.state = advance(options, WORDS, self.interval(), self.state)
            steps.append(step)
            if step.parallelism is not None:
                self.at = dict(step.parallelism)
        return steps


def outcomes(steps: list[ManagerDecision]) -> list[str]:
    return [step.outcome for step in steps]


def test_manager_acts_at_once_and_only_once_on_heron() -> None:
    job = Job(1, 1, 1e6)
    assert outcomes(job.run(ManagerOptions(target_rate_ratio=1.0), 5)) == ["reconfigure", *["minor"] * 4]
    assert job.at == {"source": 1, "split": 10, "count": 20}
    assert job.state.reconfigurations == 1


def test_warm_up_and_activation_delay_every_reconfiguration() -> None:
    options = ManagerOptions(warm_up_intervals=2, activation_intervals=3, aggregation=Aggregation.MEDIAN)
    steps = Job(1, 1, 1e6).run(options, 11)
    wait = ["warm-up", "warm-up", "activation", "activation"]
    assert outcomes(steps) == [*wait, "reconfigure", *wait, "minor", "minor"]


def test_intervals_shorter_than_the_policys_are_ignored() -> None:
    options = ManagerOptions(policy_interval_s=60.0)
    job, state = Job(1, 1, 1e6), ManagerState()
    step, state = advance(options, WORDS, job.interval(10.0), state)
    assert step.outcome == "reconfigure"
    step, after = advance(options, WORDS, job.interval(59.0), state)
    assert (step.outcome, after) == ("between intervals", state)


@given(st.integers(1, 36), st.integers(1, 36), st.floats(0.01, 0.03), st.floats(1e5, 3e5))
def test_non_linear_jobs_settle_in_three_steps_from_any_start(split: int, count: int, drag: float, rate: float) -> None:
    """Each instance added slows the others by 1 to 3%, and up to 6 ideal instances are needed.

    One step maps p to need * (1 + drag * (p - 1)), so the distance to the fixed point shrinks by need * drag < 0.2.
    """
    job = Job(split, count, rate, drag)
    steps = job.run(ManagerOptions(), 8)
    assert outcomes(steps).count("reconfigure") <= 3
    assert steps[-1].outcome == "minor"
    assert min(job.capacity("split"), job.capacity("count") / 20) >= rate * (1 - 1e-8)


def test_a_reconfiguration_that_degrades_the_job_is_rolled_back_and_not_repeated() -> None:
    """The new configuration suffers (say, from slow disks): it emits half of what it did before."""
    options = ManagerOptions(warm_up_intervals=1, degradation=0.1)
    job = Job(5, 10, 1e6)
    job.run(options, 2)
    assert job.at["split"] == 10
    state = job.state
    worse = replace(job.interval(), achieved_per_s={"source": 2.5e5})
    step, state = advance(options, WORDS, worse, state)
    assert step.outcome == "warm-up"
    step, state = advance(options, WORDS, replace(worse, end_s=job.now_s + 60), state)
    assert step == ManagerDecision("roll-back", {"source": 1, "split": 5, "count": 10})
    job.at, job.now_s = dict(step.parallelism or {}), job.now_s + 60
    assert set(outcomes(job.run(options, 4, state))) == {"warm-up", "rejected before"}
    assert job.state.reconfigurations == 2
    job.rate = 1.2e6  # another target: what was rejected may be tried again
    assert "reconfigure" in outcomes(job.run(options, 4, job.state))


def test_fruitless_reconfigurations_come_to_an_end() -> None:
    """With one hot key splitting never processes more than half of the target, however many instances there are."""
    options = ManagerOptions(max_fruitless=3)
    at, state, result = 4, ManagerState(), []
    for minute in range(8):
        rates = {**heron(4, 20), "split": OperatorRates(at, 5e5, 1e7)}
        step, state = advance(options, WORDS, PolicyInterval(60.0 * minute, rates, {"source": 5e5}), state)
        result.append(step.outcome)
        at = step.parallelism["split"] if step.parallelism else at
    assert result == ["reconfigure"] * 3 + ["limit"] * 5
    assert at == 32


@given(
    st.lists(st.tuples(st.tuples(*[st.tuples(st.integers(1, 64), ODD, ODD)] * 3), ODD), min_size=1, max_size=6),
    st.sampled_from(Aggregation),
    st.integers(0, 2),
    st.integers(1, 3),
)
def test_memory_survives_json_and_no_measurement_breaks_the_manager(
    epochs: list[tuple[tuple[tuple[int, float, float], ...], float]],
    how: Aggregation,
    warm_up: int,
    activation: int,
) -> None:
    options = ManagerOptions(1.0, warm_up, activation, how, target_rate_ratio=1.0)
    state = ManagerState()
    for second, (rows, achieved) in enumerate(epochs):
        rates = {name: OperatorRates(*row) for name, row in zip(WORDS.names, rows, strict=True)}
        interval = PolicyInterval(float(second), rates, {"source": achieved})
        step, after = advance(options, WORDS, interval, state)
        assert advance(options, WORDS, interval, state) == (step, after)
        assert load(ManagerState, dump(after)) == after
        assert all(count >= 1 for count in (step.parallelism or {}).values())
        state = after


@pytest.mark.parametrize(
    "wrong",
    [{"policy_interval_s": 0.0}, {"warm_up_intervals": -1}, {"activation_intervals": 0}, {"target_rate_ratio": 0.9}],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ManagerOptions(**wrong)  # type: ignore[arg-type]
