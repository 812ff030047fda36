"""ContTune and its baselines as policies over windows of a simulated job."""

from dataclasses import replace

import numpy as np
import pytest
from situations import make_situation

from include.settings import Planner
from lab.policies.baselines.random_search import RandomSearch, SearchMemory, search_order
from lab.policies.conttune.conttune_options import ContTuneOptions
from lab.policies.conttune.conttune_policy import BigDs2, ContTune, ContTuneAlpha0
from lab.policies.conttune.tuning_loop import TuningMemory, advance
from lab.simulation.spec import JobSpec, OperatorSpec
from lab.simulation.testbed import Testbed, observations
from models.bundle.job_models import JobModels, LatencyModel, RecoveryModel
from models.policies.memory import dump, load
from models.policies.observations import Observations
from models.policies.protocol import Situation
from models.scheduling.demand import SourceForecast

OPERATORS = (
    OperatorSpec("source", (), 50_000.0, 0.0),
    OperatorSpec("map", ("source",), 1_000.0, 0.03, selectivity=2.0),
    OperatorSpec("sink", ("map",), 4_000.0, 0.0),
)
JOB = JobSpec("job", OPERATORS, slots_max=40, downtime_noise=0.0, capacity_noise=0.0)
GRAPH = JOB.graph()
MODELS = JobModels(
    {}, {"map": 2.0, "sink": 0.0}, RecoveryModel(20, 2, 40, 4, 30, 5), LatencyModel(np.zeros(0), np.zeros(0))
)
WINDOW_S = 60.0


def needed(rate: float) -> list[int]:
    """Parallelism at which the simulated abilities just suffice."""
    p = np.arange(1, 200)
    capacities = (50_000.0 * p, 1000.0 * p / (1 + 0.03 * (p - 1)), 4000.0 * p)
    return [int(np.argmax(curve >= need)) + 1 for curve, need in zip(capacities, (rate, rate, 2 * rate), strict=True)]


def drive(policy, rates, *, hide_arrivals: bool = False, windows: int = 8):
    """Give each rate to the job for some windows; return the configurations run, by rate."""
    bed = Testbed([JOB], np.ones((1, 3), np.int64), step_s=10.0, has_buffers=False)
    running, memory, paths = [1, 1, 1], policy.first_memory(), []
    for rate in rates:
        path = [tuple(running)]
        for number in range(windows):
            window = bed.run(np.array([[rate, 0.0, 0.0]]), WINDOW_S)
            bed.drain(0)  # records that waited would look like a higher rate
            observed = observations([window], 0, 3)
            if hide_arrivals:
                observed = replace(observed, target_data_rate_per_s=np.full((1, 3), np.nan))
            result = situation(observed, running, seed=number)
            before = load(type(memory), dump(memory))
            schedule, memory = policy.decide(result, memory)
            repeated, after = policy.decide(result, before)
            assert (told(repeated), dump(after)) == (told(schedule), dump(memory))
            (decision,) = schedule.decisions
            wanted = decision.step.parallelism_to.tolist()
            if wanted != running:
                bed.rescale(0, np.array(wanted), downtime_s=0.0)
                path.append(tuple(wanted))
                running = wanted
        paths.append(path)
    return paths, memory


def told(schedule):
    return [(one.reason, one.step.parallelism_to.tolist()) for one in schedule.decisions]


def situation(seen: Observations, running, *, slots: int = 40, seed: int = 0) -> Situation:
    forecast = SourceForecast(0, 600, {"source": np.full((4, 200), 1000.0)})
    at = int(seen.window_start_s[-1] + seen.window_s) if len(seen) else 0
    return make_situation(
        at, GRAPH, dict(zip(GRAPH.names, running, strict=True)), MODELS, forecast, slots, Planner(), seen, seed
    )


def test_conttune_finds_the_least_sufficient_parallelism_and_remembers_it() -> None:
    paths, memory = drive(ContTune(), [8000.0, 2000.0, 8000.0])
    assert [path[-1][1] for path in paths] == [needed(rate)[1] for rate in (8000.0, 2000.0, 8000.0)]
    assert len(paths[0]) > 2  # linear steps towards an unknown curve
    assert len(paths[2]) == 2  # the second time one reconfiguration is enough
    assert {known.parallelism for known in memory.histories["map"]} >= {1, needed(8000.0)[1]}
    assert memory.phase == "idle"


def test_alpha_0_repeats_only_what_it_has_seen() -> None:
    paths, _ = drive(ContTuneAlpha0(), [8000.0, 2000.0, 8000.0])
    assert paths[2][-1][1] == needed(8000.0)[1]
    assert len(paths[2]) == 2


def test_hidden_arrivals_need_the_big_phase_that_doubles_all_operators() -> None:
    paths, memory = drive(ContTune(), [8000.0], hide_arrivals=True)
    assert paths[0][:5] == [(1, 1, 1), (2, 2, 2), (4, 4, 4), (8, 8, 8), (16, 16, 16)]
    assert paths[0][-1] == tuple(needed(8000.0))
    assert memory.p_max == 16


def test_big_ds2_goes_through_the_big_phase_although_arrivals_are_known() -> None:
    paths, _ = drive(BigDs2(), [8000.0], windows=10)
    assert paths[0][1:5] == [(2, 2, 2), (4, 4, 4), (8, 8, 8), (16, 16, 16)]
    assert paths[0][-1][1] >= needed(8000.0)[1]
    assert paths[0][-1][1] < 16


def test_the_big_phase_stops_at_the_limit() -> None:
    bed = Testbed([JOB], np.full((1, 3), 4, np.int64), step_s=10.0, has_buffers=False)
    observed = observations([bed.run(np.array([[20_000.0, 0.0, 0.0]]), WINDOW_S)], 0, 3)
    hidden = replace(observed, target_data_rate_per_s=np.full((1, 3), np.nan))
    limits = dict.fromkeys(GRAPH.names, 4)
    running = dict.fromkeys(GRAPH.names, 4)
    step, memory = advance(ContTuneOptions(), GRAPH, hidden, running, limits=limits, memory=TuningMemory())
    assert (step.outcome, step.parallelism, memory.p_max) == ("limit", None, 4)


def test_a_balanced_job_is_left_alone_and_no_window_counts_twice() -> None:
    rate = 0.7 * 1000 * 8 / (1 + 0.03 * 7)
    bed = Testbed([JOB], np.array([[1, 8, 3]]), step_s=10.0)
    observed = observations([bed.run(np.array([[rate, 0.0, 0.0]]), WINDOW_S)], 0, 3)
    schedule, memory = ContTune().decide(situation(observed, [1, 8, 3]), TuningMemory())
    assert schedule.decisions[0].reason == "ContTune finds the job neither over- nor under-provisioned."
    assert len(memory.histories["map"][0].recent_per_s) == 1
    schedule, again = ContTune().decide(situation(observed, [1, 8, 3]), memory)
    assert again == memory
    assert "no new undisturbed window" in schedule.decisions[0].reason


def test_disturbed_windows_and_those_of_another_parallelism_do_not_decide() -> None:
    bed = Testbed([JOB], np.ones((1, 3), np.int64), step_s=10.0, has_buffers=False)
    observed = observations([bed.run(np.array([[9000.0, 0.0, 0.0]]), WINDOW_S)], 0, 3)
    disturbed = replace(observed, disturbed=np.ones(1, bool))
    schedule, memory = ContTune().decide(situation(disturbed, [1, 1, 1]), TuningMemory())
    assert schedule.decisions[0].step.is_hold
    assert not any(memory.histories.values())
    schedule, memory = ContTune().decide(situation(observed, [1, 2, 1]), TuningMemory())
    assert schedule.decisions[0].step.is_hold
    assert memory.histories["map"][0].parallelism == 1  # it still teaches what one instance can do


@pytest.mark.parametrize("policy", [ContTune(), ContTuneAlpha0(), BigDs2(), RandomSearch()])
def test_nothing_seen_changes_nothing(policy) -> None:
    schedule, _ = policy.decide(situation(Observations.nothing(), [1, 2, 3]), policy.first_memory())
    assert schedule.decisions[0].step.is_hold


def test_random_search_tries_each_parallelism_once_and_stops_where_it_fits() -> None:
    order = search_order(7, "map", 32)
    assert sorted(order.tolist()) == list(range(1, 33))
    assert order.tolist() == search_order(7, "map", 32).tolist()
    assert order.tolist() != search_order(7, "sink", 32).tolist()
    paths, memory = drive(RandomSearch(), [8000.0], windows=70)
    maps = [one[1] for one in paths[0]]
    p = np.arange(1, 41)
    recommended = np.ceil(8000.0 * (1 + 0.03 * (p - 1)) / 1000.0)
    assert recommended[maps[-1] - 1] == maps[-1]
    assert memory == replace(memory, tried={})
    assert isinstance(memory, SearchMemory)
