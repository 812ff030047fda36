"""What holds for every registered policy, whatever it is shown."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from situations import make_situation

from include.domain.graph import JobGraph, Operator
from include.policy_catalogue import catalogue
from include.settings import Planner
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from models.policies.memory import dump, load
from models.policies.observations import MEASURES, Observations
from models.policies.protocol import Schedule, Situation
from models.policies.registry import policy
from models.scheduling.demand import SourceForecast

WINDOW_S, BIN_S, START_S = 300, 600, 1_763_600_400
GRAPH = JobGraph(
    (
        Operator("source a"),
        Operator("source b"),
        Operator("join", ("source a", "source b"), max_parallelism=24),
        Operator("sink", ("join",), max_parallelism=16),
    )
)
SHARES = ("busy_share", "idle_share", "backpressured_share")
SLOTS_MAX = 20


def models() -> JobModels:
    p = np.arange(1, 33)
    curve = CapacityCurve(p, 900.0 * p, 20.0 * p, np.array([2, 4]), np.array([1800.0, 3600.0]), 900.0)
    recovery = RecoveryModel(20.0, 2.0, 40.0, 4.0, 30.0, 3)
    latency = LatencyModel(np.array([0.2, 0.9]), np.array([50.0, 900.0]))
    return JobModels({"join": curve, "sink": curve}, {"join": 0.5, "sink": 0.0}, recovery, latency)


def forecast(rate: float) -> SourceForecast:
    bins = np.full(26 * 3600 // BIN_S, rate)
    quantiles = np.stack([0.9 * bins, bins, 1.1 * bins, 1.2 * bins])
    return SourceForecast(START_S - 3600, BIN_S, dict.fromkeys(GRAPH.sources, quantiles))


values = st.one_of(
    st.just(0.0), st.just(np.nan), st.just(1e-300), st.floats(0, 1e6), st.sampled_from([1e15, 900.0, 3600.0])
)
shares = st.one_of(st.just(0.0), st.just(np.nan), st.just(1.0), st.floats(0, 1.05))


@st.composite
def observations(draw: st.DrawFn) -> Observations:
    windows = draw(st.integers(0, 5))
    shape = (windows, len(GRAPH.names))

    def matrix(of: st.SearchStrategy[float]) -> np.ndarray:
        result = [draw(st.lists(of, min_size=shape[1], max_size=shape[1])) for _ in range(windows)]
        return np.array(result, float).reshape(shape)

    measures = {name: matrix(shares if name in SHARES else values) for name in MEASURES}
    parallelism = (
        matrix(st.integers(0, 40).map(float)) if draw(st.booleans()) else np.tile([1.0, 1, 4, 2], (windows, 1))
    )
    gaps = draw(st.lists(st.integers(1, 3), min_size=windows, max_size=windows))
    return Observations(
        window_start_s=START_S - WINDOW_S * np.cumsum(gaps, dtype=np.int64)[::-1].copy(),
        window_s=WINDOW_S,
        parallelism=parallelism.reshape(shape).astype(np.int64),
        disturbed=np.array(draw(st.lists(st.booleans(), min_size=windows, max_size=windows)), bool),
        **measures,
    )


def situation(seen: Observations, at_s: int, rate: float, running: tuple[int, ...]) -> Situation:
    return make_situation(
        as_of_s=at_s,
        graph=GRAPH,
        parallelism=dict(zip(GRAPH.names, running, strict=True)),
        models=models(),
        forecast=forecast(rate),
        slots_max=SLOTS_MAX,
        options=Planner(),
        observations=seen,
        seed=at_s,
    )


def feasible(schedule: Schedule) -> bool:
    limits = [min(operator.max_parallelism, SLOTS_MAX) for operator in GRAPH.operators]
    steps = [decision.step for decision in schedule.decisions]
    changes = [step.parallelism_to for step in steps if not step.is_hold]
    return bool(steps) and all((change >= 1).all() and (change <= limits).all() for change in changes)


def told(schedule: Schedule) -> list[tuple[object, ...]]:
    return [
        (d.step.apply_at_s, d.step.effective_at_s, d.step.parallelism_to.tolist(), d.reason) for d in schedule.decisions
    ]


@pytest.fixture(params=sorted(catalogue()))
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    return request.param


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    seen=st.lists(observations(), min_size=1, max_size=3),
    rate=st.sampled_from([0.0, 1.0, 1500.0, 9000.0, 1e12]),
    running=st.tuples(*[st.integers(1, 16)] * 4),
)
def test_no_policy_fails_or_leaves_the_limits(name, seen, rate, running) -> None:
    """Idle, unmeasured and zero-rate operators included; memory is carried on as the plan stage does, through text."""
    chosen = policy(name)
    memory = chosen.first_memory()
    for hour, windows in enumerate(seen):
        now_s = START_S + 3600 * hour
        shifted = situation(_later(windows, 3600 * hour), now_s, rate, running)
        schedule, after = chosen.decide(shifted, memory)
        again, same = policy(name).decide(shifted, memory)
        assert feasible(schedule)
        assert told(schedule) == told(again)
        assert all(decision.reason for decision in schedule.decisions)
        text = dump(after)
        assert text == dump(same)
        memory = load(type(after), text)
        assert dump(memory) == text


def _later(seen: Observations, seconds: int) -> Observations:
    fields = {field: getattr(seen, field) for field in (*MEASURES, "parallelism", "disturbed", "window_s")}
    return Observations(window_start_s=seen.window_start_s + seconds, **fields)


def test_every_policy_has_a_title(name) -> None:
    assert catalogue()[name].title
