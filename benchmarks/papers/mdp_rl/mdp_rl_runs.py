"""One simulated year of each scaling policy, online: paths of configurations along a given path of rates."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.papers.mdp_rl.pipeline import K_MAX, Year, judge, responses_s, utilisations
from lab.policies.mdp_rl.bellman import solve
from lab.policies.mdp_rl.learner import CENTRALISED_SWEEPS, DECENTRALISED_SWEEPS, AgentLearner, Sweeps
from lab.policies.mdp_rl.mdp_rl_options import DISCOUNT, PAPER, PAPER_WEIGHTS, LearningOptions
from lab.policies.mdp_rl.space import Configurations
from models.arrays import Floats, Ints


def violations(levels: int, operators: int, objective_s: float) -> Floats:
    """Return (J, K, ..., K) 1.0 where the pipeline responds later than the objective."""
    return (responses_s(levels, operators) > objective_s).astype(float)


def run_mdp(levels: Ints, probability: Floats, operators: int, objective_s: float) -> Year:
    """Run the optimal centralised policy, from value iteration with the true chain of rates."""
    began = time.perf_counter()
    space = Configurations((K_MAX,) * operators)
    violated = violations(len(probability), operators, objective_s)
    flat = violated.reshape(len(probability), -1)
    expected = PAPER_WEIGHTS.violation * (probability @ flat).reshape(violated.shape)
    cost = PAPER_WEIGHTS.resources * space.shares() + expected
    after, _ = solve(cost, probability, rescale_cost=PAPER_WEIGHTS.reconfiguration, discount=DISCOUNT)
    policy = space.greedy(after, PAPER_WEIGHTS.reconfiguration).tolist()
    now, path = 0, [0]
    for level in levels[:-1].tolist():
        now = policy[level][now]
        path.append(now)
    return judge(levels, space.parallelism[path], violated, time.perf_counter() - began)


def run_centralised(
    levels: Ints,
    level_count: int,
    operators: int,
    objective_s: float,
    *,
    knows_response: bool,
    options: LearningOptions = PAPER,
    sweeps: Sweeps = CENTRALISED_SWEEPS,
) -> Year:
    """Run one agent that learns for all operators (RL+ when it knows the response model, else RL)."""
    began = time.perf_counter()
    space = Configurations((K_MAX,) * operators)
    violated = violations(level_count, operators, objective_s)
    axes = tuple(range(1, operators + 1))
    agent = AgentLearner(
        (level_count, *space.limits),
        axes,
        space.shares(),
        violated,
        knows_response=knows_response,
        options=options,
        sweeps=sweeps,
    )
    reachable = list(space.neighbours)
    numbers = space.neighbours.tolist()
    fee = np.full(space.neighbours.shape[1], PAPER_WEIGHTS.reconfiguration)
    fee[0] = 0.0
    now, path, before = 0, [0], int(levels[0])
    for level in levels[1:].tolist():
        now = numbers[now][int(agent.choose(before, reachable[now], fee))]
        path.append(now)
        agent.observe(before, level, now)
        before = level
    return judge(levels, space.parallelism[path], violated, time.perf_counter() - began)


def run_decentralised(
    levels: Ints,
    level_count: int,
    operators: int,
    targets: tuple[float, ...],
    *,
    knows_utilisation: bool,
    sweeps: Sweeps = DECENTRALISED_SWEEPS,
) -> tuple[Ints, float]:
    """Run one agent per operator and utilisation target.

    Agents do not influence each other (selectivity is 1), so one run holds the pipelines of every length up to
    ``operators`` and all targets.

    Returns:
        (T + 1, targets, operators) instances, and the seconds that the run took.
    """
    began = time.perf_counter()
    agents = len(targets) * operators
    busy = np.tile(utilisations(level_count, operators), len(targets))  # (J, K, M), operators fastest
    violated = (busy > np.repeat(targets, operators)).astype(float)
    shares = np.arange(1, K_MAX + 1)[:, None] / K_MAX
    shape = (level_count, K_MAX, agents)
    agent = AgentLearner(shape, (1,), shares, violated, knows_response=knows_utilisation, sweeps=sweeps)
    column = np.arange(agents)
    # (actions, K, M) flat positions: stay, down, up; at a bound the action is that of staying
    rows = np.clip(np.arange(K_MAX) + np.array([0, -1, 1])[:, None], 0, K_MAX - 1)
    reach = (rows[:, :, None] * agents + column).reshape(3, -1)
    fee = np.array([[0.0], [PAPER_WEIGHTS.reconfiguration], [PAPER_WEIGHTS.reconfiguration]])
    at, before = column.copy(), int(levels[0])
    path = np.zeros((len(levels), agents), np.int8)
    for slot, level in enumerate(levels[1:].tolist(), start=1):
        reachable = reach[:, at]
        at = reachable[agent.choose(before, reachable, fee), column]
        path[slot] = at // agents
        agent.observe(before, level, at)
        before = level
    runs = path.reshape(len(levels), len(targets), operators).astype(np.int64) + 1
    return runs, time.perf_counter() - began
