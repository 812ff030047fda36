"""Dhalion's rules, on readings and on simulated jobs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.papers.dhalion_heron import dhalion_on_heron
from include.domain.graph import JobGraph, Operator
from lab.policies.dhalion.dhalion_inputs import readings
from lab.policies.dhalion.dhalion_options import DhalionOptions, ScalingAmount, Symptom
from lab.policies.dhalion.rules import OperatorMeans, ScalingAction, resolve, scale_up
from lab.policies.ds2.optimum import OperatorRates, optimum
from lab.simulation.spec import JobSpec, OperatorSpec
from lab.simulation.testbed import Testbed, observations

CALM = OperatorMeans(instances=4, limit=10, busy=0.7, backpressured=0.0, backpressured_above=0.0, short=0.0)


@pytest.mark.parametrize(
    ("instances", "backpressured", "expected"),
    [(1, 0.5, 2), (2, 0.9, 20), (3, 0.99, 30), (10, 0.2, 13), (4, 0.01, 5), (7, 0.0, 8)],
)
def test_growth_follows_the_backpressured_share(instances: int, backpressured: float, expected: int) -> None:
    assert scale_up(instances, backpressured) == expected


def test_the_cause_of_backpressure_is_the_operator_that_does_not_suffer_it() -> None:
    """Map waits for Shuffle, so Shuffle is scaled; by queues Map, which is also short, would come first."""
    result = {
        "map": replace(CALM, backpressured=0.5, backpressured_above=0.6, short=0.2),
        "shuffle": replace(CALM, backpressured_above=0.5, short=0.4),
    }
    action = resolve(DhalionOptions(), result)
    assert action == ScalingAction("shuffle", 8, "it holds up 50% of its input")
    queues = resolve(DhalionOptions(symptom=Symptom.PENDING, change=ScalingAmount.ONE), result)
    assert queues == ScalingAction("map", 5, "it holds up 20% of its input")


def test_an_idle_operator_gives_back_unless_another_one_suffers() -> None:
    result = {"map": replace(CALM, instances=10, busy=0.5), "shuffle": replace(CALM, busy=0.55)}
    assert resolve(DhalionOptions(), result) == ScalingAction("map", 8, "it works 50% of the time")
    assert resolve(DhalionOptions(change=ScalingAmount.ONE), result) == ScalingAction(
        "map", 9, "it works 50% of the time"
    )
    backpressured = result | {"shuffle": replace(CALM, backpressured_above=0.3, instances=10)}
    assert (
        resolve(DhalionOptions(), backpressured) is None
    )  # at its limit, and nothing is taken from a job in backpressure
    assert resolve(DhalionOptions(), {"map": replace(CALM, busy=float("nan"))}) is None
    assert resolve(DhalionOptions(), {}) is None


@given(
    st.lists(
        st.builds(
            OperatorMeans,
            instances=st.integers(1, 10),
            limit=st.just(10),
            busy=st.one_of(st.just(float("nan")), st.floats(0, 1)),
            backpressured=st.floats(0, 1),
            backpressured_above=st.floats(0, 1),
            short=st.floats(0, 1),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(list(Symptom)),
    st.sampled_from(list(ScalingAmount)),
    st.one_of(st.none(), st.integers(4, 30)),
)
def test_one_operator_changes_within_limits_and_budget(found, symptom, change, budget) -> None:
    named = {str(index): one for index, one in enumerate(found)}
    action = resolve(DhalionOptions(symptom=symptom, change=change, budget=budget), named)
    if action is None:
        return
    before = named[action.operator].instances
    assert 1 <= action.instances <= 10
    assert action.instances != before
    if budget is not None and action.instances > before:
        assert sum(one.instances for one in found) - before + action.instances <= budget


def test_readings_tell_backpressure_from_queues_on_a_simulated_job() -> None:
    operators = (
        OperatorSpec("source", (), 1e6, contention=0.0),
        OperatorSpec("map", ("source",), 100.0, contention=0.0, selectivity=2.0),
        OperatorSpec("sink", ("map",), 50.0, contention=0.0),
    )
    spec = JobSpec("job", operators, slots_max=10)
    bed = Testbed([spec], np.array([[1, 2, 1]]), step_s=10.0, has_buffers=False)
    observed = observations([bed.run(np.array([[400.0, 0.0, 0.0]]), 60.0)], 0, 3)
    graph = JobGraph((Operator("source"), Operator("map", ("source",)), Operator("sink", ("map",))))
    result = readings(graph, observed, {"source": 1, "map": 2, "sink": 1}, np.full(3, 10))
    # the sink takes 50/s, so the map works at 25 of its 200/s and waits otherwise
    assert result["map"].busy == pytest.approx(0.125)
    assert result["map"].backpressured == pytest.approx(0.875)
    assert result["sink"].backpressured_above == pytest.approx(0.875)
    # with queues of its own the map would get 400 and pass on 2 x 200
    assert result["map"].short == pytest.approx(0.5)
    assert result["sink"].short == pytest.approx(1 - 50 / 400)


def test_the_order_in_which_branches_are_listed_does_not_matter() -> None:
    """Flink lists a plan from its sinks up, a description of a job from its sources down."""
    branches = [
        OperatorSpec("b", ("source",), 100.0, contention=0.0),
        OperatorSpec("a", ("source",), 100.0, contention=0.0),
    ]
    result = []
    for listed in (branches, branches[::-1]):
        sink = OperatorSpec("sink", ("b", "a"), 1e6, contention=0.0)
        spec = JobSpec("job", (OperatorSpec("source", (), 1e6, contention=0.0), *listed, sink), slots_max=10)
        bed = Testbed([spec], np.ones((1, 4), np.int64), step_s=10.0, has_buffers=False)
        observed = observations([bed.run(np.array([[400.0, 0.0, 0.0, 0.0]]), 60.0)], 0, 4)
        graph = spec.graph()
        one = readings(graph, observed, dict.fromkeys(graph.names, 1), np.full(4, 10))
        assert list(one) == ["a", "b", "sink"]
        result.append(resolve(DhalionOptions(), one))
    assert result[0] == result[1] is not None
    assert result[0].operator == "a"


def test_ds2_needs_fewer_instances_and_steps_than_dhalion_on_herons_word_count() -> None:
    run = dhalion_on_heron()
    graph = JobGraph((Operator("source"), Operator("split", ("source",)), Operator("count", ("split",))))
    rates = {
        "source": OperatorRates(1, 0.0, 1e6),
        "split": OperatorRates(1, 1e5, 2e6),
        "count": OperatorRates(1, 1e6, 0.0),
    }
    ds2 = optimum(graph, rates).parallelism
    assert ds2["split"] + ds2["count"] == 30 < run.instances
    assert len(run.path) - 1 > 1  # DS2 takes one step
    assert run.path[-1][0] >= 10
    assert run.path[-1][1] >= 20
