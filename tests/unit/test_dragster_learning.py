"""What Dragster learns and chooses: posterior, UCB, budget, regret and the bound of the multipliers."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from include.domain.graph import JobGraph, Operator
from lab.policies.dragster.bounds import Constants, fit_bound, information_gain, regret_bound
from lab.policies.dragster.dragster_memory import DragsterMemory, OperatorFlow, SlotObservations
from lab.policies.dragster.dragster_options import Bonus, CapacityTarget, DragsterOptions, ThroughputForm
from lab.policies.dragster.dragster_slot import advance
from lab.policies.dragster.gaussian import Kernel, NormalisedSamples, Posterior, posterior
from lab.policies.dragster.lagrangian import SaddlePointProblem
from lab.policies.dragster.network import flow, network
from lab.policies.dragster.projection import project
from lab.policies.dragster.regret import dynamic_fit, dynamic_regret
from lab.policies.dragster.throughput_learning import fit_throughput, remember_flows
from lab.policies.dragster.ucb import bonus, track, weight

GRID = np.arange(1, 11)
CHAIN = network(JobGraph((Operator("source"), Operator("map", ("source",)), Operator("shuffle", ("map",)))), {})
RATE = 152.5e3
CURVES = {"map": 33000 * GRID / (1 + 0.006 * (GRID - 1)), "shuffle": 16343 * GRID / (1 + 0.00604 * (GRID - 1))}


@given(
    tasks=st.lists(st.integers(1, 10), min_size=1, max_size=12),
    values=st.lists(st.floats(0, 2), min_size=12, max_size=12),
    deviation=st.sampled_from([0.3, 1.0]),
)
@settings(deadline=None, max_examples=40)
def test_the_posterior_is_that_of_scikit_learn(tasks, values, deviation) -> None:
    """Eq. 17; samples of one number of tasks given as their mean count the same as given one by one."""
    at, y = np.array(tasks, float), np.array(values[: len(tasks)])
    reference = GaussianProcessRegressor(
        ConstantKernel(deviation**2, "fixed") * RBF(2.0, "fixed"), alpha=0.03**2, optimizer=None
    ).fit(at[:, None], y)
    mean, spread = reference.predict(GRID[:, None].astype(float), return_std=True)
    places = np.unique(at)
    grouped = NormalisedSamples(
        places,
        np.array([y[at == one].mean() for one in places]),
        np.array([(at == one).sum() for one in places], float),
    )
    result = posterior(Kernel(2.0, deviation, 0.03), GRID, grouped)
    np.testing.assert_allclose(result.mean, mean, atol=1e-8)
    np.testing.assert_allclose(result.deviation**2, spread**2, atol=1e-8)


def test_a_linear_prior_mean_carries_what_is_seen_to_what_is_not() -> None:
    one = NormalisedSamples(np.array([2.0]), np.array([0.4]), np.array([1.0]))
    assert one.slope == pytest.approx(0.2)
    assert posterior(Kernel(), GRID, one, slope=one.slope).mean == pytest.approx(0.2 * GRID)
    assert abs(posterior(Kernel(), GRID, one).mean[-1]) < 1e-3  # Eq. 17 as printed knows nothing there


def test_the_weight_of_exploration() -> None:
    assert weight(2, 10, 2.0) == pytest.approx(9.75945, abs=1e-5)
    assert weight(10, 10, 2.0) == pytest.approx(16.19721, abs=1e-5)
    with pytest.raises(ValueError, match="delta above 1"):
        weight(2, 10, 1.0)


def test_the_bonus_has_the_printed_and_the_proved_form() -> None:
    known = Posterior(GRID, np.zeros(10), np.full(10, 0.5))
    assert bonus(known, 4.0, Bonus.VARIANCE)[0] == 1.0
    assert bonus(known, 4.0, Bonus.DEVIATION)[0] == 1.0
    assert bonus(known, 16.0, Bonus.DEVIATION)[0] == 2.0


def test_tracking_takes_the_nearest_capacity_unless_another_is_unknown() -> None:
    sure = Posterior(GRID, 0.1 * GRID, np.zeros(10))
    assert track(sure, 0.52, 10.0) == 5
    unsure = Posterior(GRID, 0.1 * GRID, np.where(GRID == 9, 0.5, 0.0))
    assert track(unsure, 0.52, 10.0) == 9


@given(
    first=st.lists(st.floats(0.01, 2), min_size=6, max_size=6),
    second=st.lists(st.floats(0.01, 2), min_size=6, max_size=6),
    third=st.lists(st.floats(0.01, 2), min_size=6, max_size=6),
    budget=st.integers(3, 18),
)
@settings(deadline=None, max_examples=60)
def test_a_budget_buys_the_best_throughput_of_all_configurations(first, second, third, budget) -> None:
    graph = JobGraph((Operator("s"), Operator("a", ("s",)), Operator("b", ("a",)), Operator("c", ("b",))))
    net, source = network(graph, {}), {"s": 1.0}
    capacity = {name: np.array(values) for name, values in (("a", first), ("b", second), ("c", third))}

    def throughput(tasks: dict[str, int]) -> float:
        return flow(net, source, {name: float(capacity[name][count - 1]) for name, count in tasks.items()}).sink

    result = project(net, source, capacity, budget)
    every = [dict(zip(capacity, each, strict=True)) for each in itertools.product(range(1, 7), repeat=3)]
    best = max(throughput(each) for each in every if sum(each.values()) <= budget)
    assert sum(result.values()) <= budget
    assert throughput(result) == pytest.approx(best, abs=1e-9)


def test_the_budget_of_the_word_count_is_best_spent_on_3_and_5() -> None:
    assert project(CHAIN, {"source": RATE}, CURVES, 8) == {"map": 3, "shuffle": 5}
    ratio = CURVES["shuffle"][4] / CURVES["shuffle"][2]
    assert ratio == pytest.approx(1.647, abs=0.01)


def test_regret_and_fit_add_up() -> None:
    assert dynamic_regret([3.0, 3.0, 3.0], [1.0, 2.0, 3.0]).tolist() == [2.0, 3.0, 3.0]
    assert dynamic_fit([[0.5, 0.1], [0.2, -0.4]]).tolist() == pytest.approx([0.7, 0.4])


def play(target: CapacityTarget, slots: int, seed: int) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Dragster on the word count at a fixed load; returns (T,) throughput, (2, T) excess and the multipliers' norms."""
    draws, tasks, memory = np.random.default_rng(seed), {"map": 1, "shuffle": 1}, DragsterMemory()
    problem = SaddlePointProblem(CHAIN, {"source": RATE}, {"map": RATE, "shuffle": RATE})
    throughput, excess, norms = [], [], []
    for _ in range(slots):
        true = {name: float(CURVES[name][count - 1]) for name, count in tasks.items()}
        throughput.append(flow(CHAIN, {"source": RATE}, true).sink / RATE)
        excess.append(list(problem.excess(true).values()))
        observed = {name: y * (1 + 0.03 * draws.standard_normal()) for name, y in true.items()}
        slot = SlotObservations({"source": RATE}, {}, tasks, observed, {"map": 10, "shuffle": 10})
        tasks, memory = advance(DragsterOptions(target=target), CHAIN, slot, memory)
        norms.append(float(np.linalg.norm(list(memory.multipliers.values()))))
    return np.array(throughput), np.array(excess).T, norms


@pytest.mark.parametrize("target", list(CapacityTarget))
def test_regret_and_fit_grow_slower_than_time_and_multipliers_are_bounded(target: CapacityTarget) -> None:
    throughput, excess, norms = play(target, 100, seed=7)
    at = np.array([10, 25, 50, 100])
    regret = dynamic_regret(np.ones(100), throughput)[at - 1] / at
    only = dynamic_fit(np.maximum(excess, 0.0))[at - 1] / at
    assert (np.diff(regret) < 0).all()
    assert (np.diff(only) < 0).all()
    assert (np.diff(dynamic_fit(excess)[at - 1] / at) < 0).all()
    # Slater: ten tasks each leave a slack; it is Shuffle's 1.6% that counts
    slack = float(CURVES["shuffle"][-1] / RATE - 1)
    gamma, operators, highest = 1.0, 2, 1.0
    bound = gamma * operators * highest + (2 * highest + gamma * operators * highest**2) / (2 * slack)  # Eq. 29
    assert 0 < max(norms) <= bound

    constants = Constants(operators, highest, slack, 1.0, 0.0, 10, Kernel(2.0, DragsterOptions().prior_deviation), 2.0)
    fit = dynamic_fit(excess)
    assert (fit <= fit_bound(constants, 100)).all()  # Eq. 19
    assert (dynamic_fit(np.maximum(excess, 0.0)) <= fit_bound(constants, 100)).all()
    assert (dynamic_regret(np.ones(100), throughput) <= regret_bound(constants, fit)).all()  # Eq. 20


def test_the_information_gain_is_that_of_the_best_samples() -> None:
    """Against the log determinant of all pairs and triples of three candidates; greedy finds at least 1 - 1/e of it."""
    kernel = Kernel(2.0, 0.3, 0.03)
    result = information_gain(kernel, 3, 3)
    assert (np.diff(result) > 0).all()
    for slots in (1, 2, 3):
        gains = []
        for chosen in itertools.combinations_with_replacement([1, 2, 3], slots):
            covariance = kernel.between(chosen, chosen) / kernel.noise**2 + np.eye(slots)
            gains.append(0.5 * np.linalg.slogdet(covariance)[1])
        assert (1 - 1 / np.e) * max(gains) <= result[slots - 1] <= max(gains) + 1e-9


def test_the_multiplier_of_a_starved_operator_outlasts_the_slot_and_asks_for_more() -> None:
    """What a slot could not process is asked for in the next one."""
    limits, tasks = {"map": 10, "shuffle": 10}, {"map": 5, "shuffle": 5}
    observed = {name: float(curve[4]) for name, curve in CURVES.items()}
    slot = SlotObservations({"source": RATE}, {}, tasks, observed, limits)
    starved = DragsterMemory(multipliers={"map": 3.0})
    options = DragsterOptions(prior_deviation=1e-6)
    plain, after = advance(options, CHAIN, slot, DragsterMemory())
    more, _ = advance(options, CHAIN, slot, starved)
    ignored, _ = advance(dataclasses.replace(options, multiplier_weight=0.0), CHAIN, slot, starved)
    assert after.multipliers["shuffle"] > 0
    assert plain["map"] == ignored["map"] < more["map"]


FLOWS = tuple(OperatorFlow("map", rate, 500.0 * np.tanh(rate / 400.0)) for rate in (50.0, 150.0, 300.0, 600.0, 900.0))


def test_throughput_is_learnt_in_the_form_that_was_chosen() -> None:
    bent = fit_throughput(FLOWS, ThroughputForm.TANH)
    assert bent(np.array([450.0])) == pytest.approx(500.0 * np.tanh(450.0 / 400.0), rel=1e-3)
    straight = [OperatorFlow("map", rate, 0.3 * rate) for rate in (50.0, 150.0, 300.0)]
    assert fit_throughput(straight, ThroughputForm.LINEAR)(np.array([1000.0])) == pytest.approx(300.0)
    assert fit_throughput(straight, ThroughputForm.TANH)(np.array([300.0])) == pytest.approx(90.0, rel=0.01)
    assert fit_throughput([], ThroughputForm.TANH, 0.4)(np.array([10.0])) == pytest.approx(4.0)
    assert fit_throughput(straight[:1], ThroughputForm.TANH)(np.array([10.0])) == pytest.approx(
        3.0
    )  # one flow has no bend


def test_flows_are_kept_for_each_operator_by_itself() -> None:
    first = remember_flows((), [OperatorFlow("a", 1.0, 1.0), OperatorFlow("b", 1.0, 1.0)], 2)
    retained = remember_flows(first, [OperatorFlow("a", 2.0, 2.0), OperatorFlow("a", 3.0, 3.0)], 2)
    assert [(one.operator, one.received_per_s) for one in retained] == [("a", 2.0), ("a", 3.0), ("b", 1.0)]


def test_a_backlog_asks_for_more_and_an_idle_job_is_left_alone() -> None:
    tasks, limits = {"map": 5, "shuffle": 10}, {"map": 10, "shuffle": 10}
    memory = DragsterMemory()
    for count in (2, 5, 8, 10):
        observed = {name: float(curve[count - 1]) for name, curve in CURVES.items()}
        _, memory = advance(
            DragsterOptions(),
            CHAIN,
            SlotObservations({"source": RATE}, {}, dict.fromkeys(tasks, count), observed, limits),
            memory,
        )
    undisturbed, _ = advance(
        DragsterOptions(), CHAIN, SlotObservations({"source": RATE}, {}, tasks, {}, limits), memory
    )
    late, _ = advance(
        DragsterOptions(),
        CHAIN,
        SlotObservations({"source": RATE}, {"source": 0.5 * RATE * 600}, tasks, {}, limits),
        memory,
    )
    assert undisturbed["map"] <= 5 < late["map"]  # 1.5 times the load until the backlog is gone
    idle, _ = advance(DragsterOptions(), CHAIN, SlotObservations({"source": 0.0}, {}, tasks, {}, limits), memory)
    assert idle == tasks


def test_the_budget_holds_whatever_is_unknown() -> None:
    slot = SlotObservations(
        {"source": RATE}, {}, {"map": 3, "shuffle": 4}, {"shuffle": 6e4}, {"map": 10, "shuffle": 10}
    )
    wanted, _ = advance(DragsterOptions(budget_tasks=8), CHAIN, slot, DragsterMemory())
    assert wanted["map"] == 3  # never seen at work: it stays
    assert sum(wanted.values()) <= 8
