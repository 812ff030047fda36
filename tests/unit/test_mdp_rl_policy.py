"""The MDP/RL policies on a real job: learning from windows, memory, odd input, and a simulated day."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from scipy.stats import spearmanr
from situations import change_job, make_situation

from benchmarks.papers.mdp_rl.pipeline import read_published_counts, utilisations
from include.domain.graph import JobGraph
from include.settings import Planner
from lab.policies.mdp_rl.agent_learning import learn
from lab.policies.mdp_rl.job_planning import MdpSolution, has_too_many, plan_operator
from lab.policies.mdp_rl.learner import AgentLearner
from lab.policies.mdp_rl.mdp_rl_memory import AgentsMemory, Knowledge
from lab.policies.mdp_rl.mdp_rl_options import LEVELS, CentralisedOptions, DecentralisedOptions, Exploration
from lab.policies.mdp_rl.mdp_rl_policy import CentralisedMdp, CentralisedRl, CentralisedRlPlus, DecentralisedRl
from lab.policies.mdp_rl.rate_chain import transition_probabilities, walk
from lab.policies.mdp_rl.space import Configurations
from lab.simulation.spec import JobSpec, OperatorSpec
from lab.simulation.testbed import Testbed, observations
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from models.policies.observations import MEASURES, Observations
from models.policies.protocol import Situation
from models.scheduling.demand import SourceForecast
from models.scheduling.need import CapacityBounds

POLICIES = [
    CentralisedMdp(),
    CentralisedRlPlus(),
    CentralisedRl(),
    DecentralisedRl(),
    DecentralisedRl(DecentralisedOptions(target_utilisation=0.8, knows_utilisation=False)),
]
GRAPH = JobSpec(
    "words",
    (
        OperatorSpec("src", (), 100_000.0, 0.0),
        OperatorSpec("map", ("src",), 1000.0, 0.0),
        OperatorSpec("sink", ("map",), 800.0, 0.0),
    ),
    slots_max=16,
)
WINDOW_S, START_S = 300, 1_763_661_600


def curve(per_instance: float) -> CapacityCurve:
    p = np.arange(1, 17)
    return CapacityCurve(p, per_instance * p, 0.02 * per_instance * p, p.copy(), per_instance * p, per_instance)


MODELS = JobModels(
    {"src": curve(100_000.0), "map": curve(1000.0), "sink": curve(800.0)},
    {"src": 1.0, "map": 1.0, "sink": 1.0},
    RecoveryModel(20.0, 2.0, 40.0, 4.0, 30.0, 5),
    LatencyModel(np.zeros(0), np.zeros(0)),
)


def windows(rates: np.ndarray, runs: tuple[int, int, int] = (1, 4, 5)) -> Observations:
    """A job that was never rescaled and kept up."""
    shape = (len(rates), 3)
    capacity = np.array([100_000.0, 1000.0, 800.0]) * runs
    result: dict[str, Any] = {name: np.zeros(shape) for name in MEASURES}
    result["target_data_rate_per_s"] = np.column_stack([rates, np.full((len(rates), 2), np.nan)])
    result["processing_rate_per_s"] = np.repeat(rates[:, None], 3, axis=1)
    result["true_processing_rate_per_s"] = np.broadcast_to(capacity, shape)
    result["busy_share"] = result["processing_rate_per_s"] / capacity
    starts = START_S - WINDOW_S * np.arange(len(rates), 0, -1, dtype=np.int64)
    still = np.zeros(len(rates), bool)
    return Observations(starts, WINDOW_S, np.full(shape, runs, np.int64), disturbed=still, **result)


def situation(seen: Observations, running: tuple[int, int, int] = (1, 4, 5), at_s: int = START_S) -> Situation:
    forecast = SourceForecast(at_s // 600 * 600, 600, {"src": np.full((4, 144), 2000.0)})
    names: JobGraph = GRAPH.graph()
    parallelism = dict(zip(names.names, running, strict=True))
    return make_situation(at_s, names, parallelism, MODELS, forecast, 16, Planner(), seen)


def after(policy: Any, found: Situation, memory: AgentsMemory | None = None) -> list[int]:
    schedule, _ = policy.decide(found, policy.first_memory() if memory is None else memory)
    return schedule.decisions[0].step.parallelism_to.tolist()


def noise(mean: float, count: int = 200) -> np.ndarray:
    return mean * (1 + 0.05 * np.random.default_rng(2).standard_normal(count))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(st.floats(0, 1e6), st.just(np.nan), st.just(0.0), st.floats(0, 1e-300)), max_size=40),
    st.integers(0, 40),
)
def test_it_does_not_matter_how_a_history_is_cut(rates: list[float], cut: int) -> None:
    rate, runs = np.array(rates, float), 1 + np.arange(len(rates))[:, None] % 3
    late = np.where(np.arange(len(rates)) % 4 == 0, np.nan, np.arange(len(rates)) % 2)
    joined = [at % 7 != 3 for at in range(len(rates))]
    whole = learn(Knowledge(), rate, runs, late, joined)
    first = learn(Knowledge(), rate[:cut], runs[:cut], late[:cut], joined[:cut])
    assert learn(first, rate[cut:], runs[cut:], late[cut:], joined[cut:]) == whole
    assert all(0 <= level < LEVELS and 0 <= to < LEVELS for level, to, _ in whole.transitions)
    assert all(times > 0 for *_, times in whole.transitions)
    assert all(0 <= estimate <= 0.4 for *_, estimate in whole.penalties)


def test_a_gap_is_no_transition_and_an_estimate_belongs_to_the_rate_before() -> None:
    rate, late = np.array([20.0, 20.0, 10.0, 20.0]), np.array([0.0, 1.0, 0.0, 1.0])
    known = learn(Knowledge(), rate, np.array([[3], [2], [2], [2]]), late, [False, True, True, False])
    assert known.transitions == ((20, 10, 1), (20, 20, 1))
    assert known.penalties == ((20, (2,), pytest.approx(0.9 * 0.04)),)


def test_a_coarser_grid_keeps_what_was_counted() -> None:
    known = learn(
        Knowledge(), np.array([20.0, 20.0, 40.0]), np.ones((3, 1), int), np.full(3, np.nan), [False, True, True]
    )
    assert (known.quantum_per_s, known.transitions) == (2.0, ((10, 10, 1), (10, 20, 1)))


def test_a_rate_that_is_too_many_levels_for_a_number_makes_the_grid_coarser() -> None:
    rates = np.array([1e-9, 1e300, 1e300])
    known = learn(Knowledge(), rates, np.ones((3, 1), int), np.full(3, np.nan), [False, True, True])
    ((level, after, times),) = [one for one in known.transitions if one[0] > 1]
    assert (level, times) == (after, 1)
    assert round(1e300 / known.quantum_per_s) == level < LEVELS
    one = np.zeros((2, 1), np.int64)
    assert MdpSolution(np.array([1, 5]), 5e-11, one, one).row(1e300) == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_memory_survives_json_and_the_same_input_gives_the_same_output(policy: Any) -> None:
    result = situation(windows(noise(2000.0)))
    schedule, memory = policy.decide(result, policy.first_memory())
    adapter = TypeAdapter(AgentsMemory)
    assert adapter.validate_json(adapter.dump_json(memory)) == memory
    assert len(adapter.dump_json(memory)) < 20_000
    again, same = policy.decide(result, policy.first_memory())
    assert (again.decisions[0].reason, same) == (schedule.decisions[0].reason, memory)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("value", [np.nan, 0.0])
def test_odd_windows_change_nothing(policy: Any, value: float) -> None:
    assert after(policy, situation(Observations.nothing())) == [1, 4, 5]
    odd = windows(np.full(60, value))
    assert after(policy, situation(odd)) == [1, 4, 5]
    blank = {name: np.full((60, 3), np.nan) for name in MEASURES}
    unseen = replace(odd, parallelism=np.zeros((60, 3), np.int64), **blank)
    _, memory = policy.decide(situation(windows(noise(2000.0))), policy.first_memory())
    assert len(after(policy, situation(unseen), memory)) == 3


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_without_capacity_models_is_left_alone(policy: Any) -> None:
    result = change_job(situation(windows(noise(2000.0))), models=replace(MODELS, capacity={}))
    assert after(policy, result) == [1, 4, 5]


@pytest.mark.parametrize("policy", [CentralisedMdp(), CentralisedRlPlus(), DecentralisedRl()])
def test_agents_that_know_the_model_find_what_the_rate_needs(policy: Any) -> None:
    """2000/s at 70% need 3 maps and 4 sinks; a peak of 5000/s in between is why the bounds are above that."""
    rates = np.concatenate([noise(2000.0), np.full(6, 5000.0), noise(2000.0)])
    for running in ((1, 1, 1), (1, 8, 9)):
        result = after(policy, situation(windows(rates, running), running))
        assert all(need <= one <= need + 1 for need, one in zip((1, 3, 4), result, strict=True))


@pytest.mark.parametrize("policy", [CentralisedMdp(), CentralisedRlPlus()])
def test_instances_that_cost_one_another_do_not_make_every_configuration_late(policy: Any) -> None:
    p = np.arange(1, 17)
    contended = {
        name: CapacityCurve(p, rate * p / (1 + 0.05 * (p - 1)), 0.01 * rate * p, p.copy(), rate * p, rate)
        for name, rate in (("src", 100_000.0), ("map", 1000.0), ("sink", 800.0))
    }
    result = situation(windows(noise(3500.0), (1, 6, 8)), (1, 6, 8))
    asked = after(policy, change_job(result, models=replace(MODELS, capacity=contended)))
    assert asked[1] >= 6
    assert asked[2] >= 8


def test_an_operator_moves_by_one_instance_per_window() -> None:
    policy = DecentralisedRl()
    _, memory = policy.decide(situation(windows(noise(2000.0), (1, 9, 9)), (1, 9, 9)), policy.first_memory())
    later = windows(noise(2000.0, 202), (1, 9, 9))
    two = replace(later.rows(np.array([200, 201])), window_start_s=START_S + WINDOW_S * np.arange(2))
    assert after(policy, situation(two, (1, 9, 9), START_S + 600), memory) == [1, 7, 7]


def test_the_mdp_keeps_to_the_plan_of_the_night() -> None:
    policy = CentralisedMdp()
    observed = windows(noise(2000.0))
    _, memory = policy.decide(situation(observed), policy.first_memory())
    more = replace(observed, window_start_s=observed.window_start_s + len(observed) * WINDOW_S)
    _, same_day = policy.decide(situation(more, at_s=START_S + 3600), memory)
    _, next_day = policy.decide(situation(more, at_s=START_S + 86_400), memory)
    assert same_day.agents[""].slots > memory.agents[""].slots
    assert same_day.planned == memory.planned
    assert next_day.planned == next_day.agents


@pytest.mark.parametrize(
    ("limits", "too_many"), [((5, 5, 5), False), ((5,) * 4, False), ((16,) * 3, True), ((2,) * 10, True)]
)
def test_one_agent_decides_up_to_so_many_configurations(limits: tuple[int, ...], too_many: bool) -> None:
    assert has_too_many(limits) is too_many


CHAIN = JobSpec(
    "chain",
    (
        OperatorSpec("src", (), 100_000.0, 0.0),
        *(OperatorSpec(f"op{at}", ("src" if at == 0 else f"op{at - 1}",), 250.0 + 50.0 * at, 0.0) for at in range(5)),
    ),
    slots_max=16,
)


@pytest.mark.parametrize("policy", [CentralisedMdp(), CentralisedRlPlus(), CentralisedRl()])
def test_more_configurations_than_one_agent_can_hold_are_left_to_the_operators_agents(policy: Any) -> None:
    """Five operators of up to 16 instances: each gets what its own agent takes, not one parallelism for all."""
    curves = {"src": curve(100_000.0)} | {f"op{at}": curve(250.0 + 50.0 * at) for at in range(5)}
    models = replace(MODELS, capacity=curves, selectivity=dict.fromkeys(curves, 1.0))
    runs = np.array([1, 12, 10, 9, 8, 7])
    rates = np.concatenate([noise(1500.0), np.full(4, 2600.0), noise(1500.0)])
    shape = (len(rates), 6)
    result: dict[str, Any] = {name: np.zeros(shape) for name in MEASURES}
    result["target_data_rate_per_s"] = np.column_stack([rates, np.full((len(rates), 5), np.nan)])
    result["processing_rate_per_s"] = np.repeat(rates[:, None], 6, axis=1)
    capacity = np.array([100_000.0, 250.0, 300.0, 350.0, 400.0, 450.0]) * runs
    result["true_processing_rate_per_s"] = np.broadcast_to(capacity, shape)
    result["busy_share"] = result["processing_rate_per_s"] / capacity
    starts = START_S - WINDOW_S * np.arange(len(rates), 0, -1, dtype=np.int64)
    observed = Observations(
        starts, WINDOW_S, np.tile(runs, (len(rates), 1)), disturbed=np.zeros(len(rates), bool), **result
    )
    names = CHAIN.graph()
    base = situation(windows(noise(1500.0)))
    now = change_job(
        base,
        graph=names,
        running=dict(zip(names.names, runs.tolist(), strict=True)),
        models=models,
        observations=observed,
    )
    schedule, memory = policy.decide(now, policy.first_memory())
    assert set(memory.agents) == {"", *names.names}
    assert "too many for one" in schedule.decisions[0].reason
    chosen = dict(zip(schedule.operators, schedule.decisions[0].step.parallelism_to.tolist(), strict=True))
    options = DecentralisedOptions(target_utilisation=0.7, knows_utilisation=policy.knows_response)
    alone, _ = DecentralisedRl(options).decide(now, DecentralisedRl(options).first_memory())
    assert chosen == dict(zip(alone.operators, alone.decisions[0].step.parallelism_to.tolist(), strict=True))
    if policy.knows_response:
        needs = [int(np.ceil(1500.0 / 0.7 / (250.0 + 50.0 * at))) for at in range(5)]
        assert all(need <= chosen[f"op{at}"] <= need + 1 for at, need in enumerate(needs))


@pytest.mark.parametrize("exploration", list(Exploration))
@pytest.mark.parametrize("knows", [True, False])
def test_the_agent_of_a_job_is_the_one_of_table_1(exploration: Exploration, knows: bool) -> None:
    """The same slots of the paper's operator through both: the same counts, estimates and actions."""
    options = DecentralisedOptions(exploration=exploration, levels=60, target_utilisation=0.7, knows_utilisation=knows)
    probability = transition_probabilities(read_published_counts())
    levels = walk(probability, 3000, np.random.default_rng(4), start=16)
    busy = utilisations(len(probability), 2)[:, :, 1]  # mu = 3.3 tuple/s, up to 5 instances
    late = (busy > 0.7).astype(float)
    shares = np.arange(1, 6) / 5
    agent = AgentLearner((len(probability), 5), (1,), shares, late, knows_response=knows, options=options)
    space, fee, now, before, runs = Configurations((5,)), np.array([0.0, 0.4, 0.4]), 0, int(levels[0]), [1]
    for level in levels[1:].tolist():
        now = int(space.neighbours[now][int(agent.choose(before, space.neighbours[now], fee))])
        agent.observe(before, level, now)
        runs.append(now + 1)
        before = level
    agent.solve()

    rates = levels * 20.0 / 60.0
    violated = late[levels, np.array(runs) - 1]
    known = Knowledge(quantum_per_s=20.0 / 60.0)
    in_one = np.array(runs)[:, None]
    joined = [False] + [True] * (len(levels) - 1)
    known = learn(known, rates, in_one, violated, joined, options=options)
    assert {(one, two): times for one, two, times in known.transitions} == {
        (int(one), int(two)): int(agent.counts[one, two]) for one, two in np.argwhere(agent.counts)
    }
    if not knows:
        assert {(level, one[0]): pytest.approx(value) for level, one, value in known.penalties} == {
            (int(level), int(at) + 1): agent.unknown[level, at] for level, at in np.argwhere(agent.tried)
        }
    served = 3.3 * np.arange(1, 6)
    bounds = CapacityBounds(served, served, served)
    plan = plan_operator(known, bounds, target_utilisation=0.7, knows_utilisation=knows, options=options)
    assert plan.parallelism.shape[0] == 5
    assert (plan.following == space.greedy(agent.after, 0.4)[plan.levels]).all()


def test_a_window_violates_by_the_latency_measured_where_an_objective_is_set() -> None:
    observed = replace(windows(noise(2000.0)), latency_ms=np.tile([900.0, np.nan, np.nan], (200, 1)))
    for objective_s, cost in ((0.5, 0.4), (1.0, 0.0)):
        policy = CentralisedRl(options=CentralisedOptions(objective_s=objective_s))
        _, memory = policy.decide(situation(observed), policy.first_memory())
        assert all(estimate == pytest.approx(cost, abs=0.3 * cost + 1e-9) for *_, estimate in _often(memory.agents[""]))


def _often(known: Knowledge) -> list[tuple[Any, ...]]:
    """Return the penalties of levels that were left ten times or more."""
    remaining: dict[int, int] = {}
    for level, _, times in known.transitions:
        remaining[level] = remaining.get(level, 0) + times
    return [one for one in known.penalties if remaining[one[0]] >= 12]


@pytest.mark.parametrize(
    "policy", [DecentralisedRl(), CentralisedRl(options=CentralisedOptions(exploration=Exploration.SHARED))]
)
def test_a_day_on_the_simulator(policy: Any) -> None:
    """Asked once an hour, agents follow a load that swings by a factor of five, and never leave the bounds."""
    bed, memory = Testbed([GRAPH], np.array([[1, 4, 4]]), step_s=60.0), policy.first_memory()
    observed, used, rates = [], [], []
    for window in range(288):
        rate = 3000 + 2000 * np.sin(2 * np.pi * window / 288)
        observed.append(bed.run(np.array([[rate, 0.0, 0.0]]), WINDOW_S))
        if window % 12 == 11:
            running = bed.state.parallelism[0]
            now = situation(observations(observed[-13:], 0, 3), tuple(running.tolist()), round(bed.time_s))
            schedule, memory = policy.decide(now, memory)
            target = schedule.decisions[0].step.parallelism_to
            assert ((target >= 1) & (target <= 16)).all()
            used.append(int(target[1]))
            rates.append(rate)
            if (target != running).any():
                bed.rescale(0, target, downtime_s=20.0)
    assert spearmanr(used, rates).statistic > 0.85
    is_high = np.array(rates) > 3000
    assert np.mean(np.array(used)[is_high]) > 1.8 * np.mean(np.array(used)[~is_high])
