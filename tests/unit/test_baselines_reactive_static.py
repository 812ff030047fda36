"""The reactive baseline's rule (Kubernetes' pod autoscaler) and the static one."""

import math
from dataclasses import replace

import numpy as np
import pytest
from situations import make_situation

from include.domain.graph import JobGraph, Operator
from include.settings import Planner
from lab.policies.baselines.baseline_options import ReactiveOptions, StaticOptions
from lab.policies.baselines.reactive import Reactive, ReactiveMemory, estimate_processor_use, recommend
from lab.policies.baselines.static import Static
from lab.simulation.spec import JobSpec, OperatorSpec
from lab.simulation.testbed import Testbed
from models.bundle.job_models import JobModels, LatencyModel, RecoveryModel
from models.policies.memory import dump, load
from models.policies.observations import MEASURES, Observations
from models.policies.protocol import Schedule, Situation
from models.scheduling.demand import SourceForecast

GRAPH = JobGraph((Operator("source", (), 128), Operator("window", ("source",), 128)))
MODELS = JobModels(
    {}, {"source": 1.0, "window": 1.0}, RecoveryModel(60, 5, 125, 8, 10, 0), LatencyModel(np.zeros(0), np.zeros(0))
)


def seen(at: int, busy: tuple[float, float], workers: int) -> Observations:
    measures = {name: np.full((4, 2), np.nan) for name in MEASURES} | {"busy_share": np.tile(busy, (4, 1))}
    start = np.array([at - 60, at - 45, at - 30, at - 15])
    return Observations(start, 15, np.full((4, 2), workers, np.int64), disturbed=np.zeros(4, bool), **measures)


def situation(at: int, busy: float, workers: int, slots_max: int = 24) -> Situation:
    return make_situation(
        as_of_s=at,
        graph=GRAPH,
        parallelism={"source": workers, "window": workers},
        models=MODELS,
        forecast=SourceForecast(at, 600, {"source": np.ones((4, 6))}),
        slots_max=slots_max,
        options=Planner(),
        observations=seen(at, (0.0, busy), workers),
    )


def workers_of(schedule: Schedule) -> int:
    return int(schedule.decisions[0].step.parallelism_to[1])


@pytest.mark.parametrize(
    ("current", "use", "expected"),
    [(10, 0.35, 10), (10, 0.384, 10), (10, 0.32, 10), (10, 0.40, 12), (10, 0.7, 20), (10, 1.0, 24), (10, 0.01, 1)],
)
def test_recommendation_is_proportional_outside_the_tolerance(current: int, use: float, expected: int) -> None:
    assert recommend(ReactiveOptions(), current, use, 24) == expected


def test_workers_without_metrics_count_as_idle_but_never_turn_growth_into_a_fall() -> None:
    options = ReactiveOptions()
    assert recommend(options, 10, 0.7, 24, unmeasured=2) == 16
    assert recommend(options, 10, 0.7, 24, unmeasured=9) == 10
    assert recommend(options, 10, 0.1, 24, unmeasured=5) == 3


def test_growth_doubles_at_most() -> None:
    schedule, _ = Reactive().decide(situation(1000, 1.0, 6), ReactiveMemory())
    assert workers_of(schedule) == 12
    schedule, _ = Reactive().decide(situation(1000, 1.0, 1), ReactiveMemory())
    assert workers_of(schedule) == 3  # ceil(1 / 0.35), below the four workers that are always allowed


def test_a_fall_waits_until_the_highest_recommendation_is_five_minutes_old() -> None:
    policy, memory = Reactive(), ReactiveMemory()
    _, memory = policy.decide(situation(1000, 0.35, 10), memory)
    for at in range(1015, 1300, 15):
        schedule, memory = policy.decide(situation(at, 0.1, 10), memory)
        assert workers_of(schedule) == 10
    schedule, _ = policy.decide(situation(1300, 0.1, 10), memory)
    assert workers_of(schedule) == 3


def test_use_of_a_worker_adds_up_over_its_operators() -> None:
    both = replace(seen(1000, (0.2, 0.5), 4))
    assert estimate_processor_use(both, 15) == pytest.approx(0.7)
    uneven = replace(both, parallelism=np.tile([1, 4], (4, 1)))
    assert estimate_processor_use(uneven, 15) == pytest.approx(0.05 + 0.5)
    assert math.isnan(estimate_processor_use(Observations.nothing(2), 15))
    assert math.isnan(estimate_processor_use(seen(1000, (math.nan, math.nan), 4), 15))


@pytest.mark.parametrize("busy", [math.nan, 0.0, 1.0, 5.0])
def test_any_measurement_gives_a_feasible_schedule_and_a_plain_memory(busy: float) -> None:
    given = situation(1000, busy, 3, slots_max=3)
    schedule, memory = Reactive().decide(given, ReactiveMemory())
    assert 1 <= workers_of(schedule) <= 3
    assert load(ReactiveMemory, dump(memory)) == memory
    assert Reactive().decide(given, ReactiveMemory())[1] == memory


def test_static_changes_once_or_never() -> None:
    given = situation(1000, 0.9, 4)
    assert workers_of(Static().decide(given, None)[0]) == 4
    assert workers_of(Static(StaticOptions(24)).decide(given, None)[0]) == 24
    assert Static(StaticOptions(24)).decide(situation(1000, 0.9, 24), None)[0].decisions[0].step.is_hold


def test_settings_without_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Static(StaticOptions(0))
    with pytest.raises(ValueError, match="target"):
        ReactiveOptions(target=0.0)


def test_a_simulated_reactive_restart_replays_and_comes_back_with_other_workers() -> None:
    spec = JobSpec("job", (OperatorSpec("source", (), 100.0),), checkpoint_interval_s=10.0)
    testbed = Testbed([spec], np.array([[2]]))
    testbed.run(np.array([[50.0]]), 25.0)
    event = testbed.fail(0, 30.0, np.array([5]))
    assert (event.before.tolist(), event.after.tolist()) == ([2], [5])
    assert event.checkpoint_age_s > 0
    window = testbed.run(np.array([[50.0]]), 20.0)
    assert window.backlog[0, 0] == pytest.approx(50.0 * (20.0 + event.checkpoint_age_s))
    assert testbed.fail(0).after.tolist() == [5]
