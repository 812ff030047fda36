"""Every policy on one path of rates, reduced to the figures that the tables and plots show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.papers.mdp_rl.mdp_rl_runs import run_centralised, run_decentralised, run_mdp, violations
from benchmarks.papers.mdp_rl.pipeline import (
    FITTED_RESPONSE_S,
    K_MAX,
    SLOTS,
    SLOTS_PER_DAY,
    Year,
    judge,
    objective_s,
)
from lab.policies.mdp_rl.mdp_rl_options import PAPER_WEIGHTS, Exploration, LearningOptions
from lab.policies.mdp_rl.rate_chain import walk
from models.arrays import Floats, Ints

OPERATORS = 3  # of Table 1 and Fig. 2a
MOST_OPERATORS = 4  # of Fig. 2b
TARGETS = (0.6, 0.7, 0.8)
DAYS = (1, 7, 30, 60, 180, 365)
MDP, RL_PLUS, RL = "Centralized MDP", "Centralized RL+", "Centralized RL"
SHARED = ", estimates shared"
LEARNT = ", utilization learnt"
FITTED = f", R_SLA {FITTED_RESPONSE_S:g} s"
COST, VIOLATIONS, RECONFIGURATIONS, INSTANCES = "avg. cost", "SLA violations", "reconf.", "avg. instances"
IDENTITY, RUN_TIME = "cost identity error", "run time"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A year in figures.

    Attributes:
        figures: column -> value.
        running_cost: mean cost since the start after each of ``curve_slots``.
    """

    figures: Mapping[str, float]
    running_cost: Floats


def run_decentralised_years(target: float, suffix: str = "") -> str:
    """Return the row of a utilisation target."""
    return f"Decentralized (U={target:g}){suffix}"


def curve_slots(slots: int = SLOTS) -> Ints:
    """Return the numbers of slots at which the running cost is kept: evenly on a logarithmic axis, and ``DAYS``."""
    even = np.geomspace(60, slots, 200).round().astype(np.int64)
    days = np.array(DAYS, np.int64) * SLOTS_PER_DAY
    return np.unique(np.concatenate([even, days[days <= slots]]))


def summary(year: Year, operators: int) -> Outcome:
    """Return the figures of a run of a number of operators."""
    slots = len(year.cost)
    from_totals = PAPER_WEIGHTS.average_cost(
        year.instances, year.reconfigurations, year.violations, slots=slots, most_instances=K_MAX * operators
    )
    figures = {
        COST: year.average_cost,
        VIOLATIONS: year.violations,
        RECONFIGURATIONS: year.reconfigurations,
        INSTANCES: year.instances,
        IDENTITY: abs(year.average_cost - from_totals),
        RUN_TIME: year.seconds,
    }
    return Outcome(figures, year.running_average()[curve_slots(slots) - 1])


def simulate(
    probability: Floats, seed: int, progress: Callable[[str], None], slots: int = SLOTS
) -> dict[tuple[str, int], Outcome]:
    """Draw a path of rates and return (row, operators) -> outcome of every policy on it.

    Args:
        probability: (J, J) of the chain; only the MDP knows it.
        seed: of the path; the policies draw nothing.
        progress: called with each policy before it runs.
        slots: length of the path.
    """
    levels, count = walk(probability, slots, np.random.default_rng(seed)), len(probability)
    result: dict[tuple[str, int], Outcome] = {}
    for operators in range(1, MOST_OPERATORS + 1):
        progress(f"seed {seed}: {MDP}, {operators} operators")
        result[MDP, operators] = summary(run_mdp(levels, probability, operators, objective_s(operators)), operators)
    fitted = run_mdp(levels, probability, OPERATORS, FITTED_RESPONSE_S)
    result[MDP + FITTED, OPERATORS] = summary(fitted, OPERATORS)
    for row, knows in ((RL_PLUS, True), (RL, False)):
        progress(f"seed {seed}: {row}")
        year = run_centralised(levels, count, OPERATORS, objective_s(OPERATORS), knows_response=knows)
        result[row, OPERATORS] = summary(year, OPERATORS)
    progress(f"seed {seed}: {RL}{SHARED}")
    shared = LearningOptions(exploration=Exploration.SHARED)
    year = run_centralised(levels, count, OPERATORS, objective_s(OPERATORS), knows_response=False, options=shared)
    result[RL + SHARED, OPERATORS] = summary(year, OPERATORS)
    for suffix, knows in (("", True), (LEARNT, False)):
        progress(f"seed {seed}: Decentralized{suffix}")
        result |= _run_decentralised_year(levels, count, suffix, knows_utilisation=knows)
    return result


def _run_decentralised_year(
    levels: Ints, count: int, suffix: str, *, knows_utilisation: bool
) -> dict[tuple[str, int], Outcome]:
    """Return the outcomes of all targets and lengths of the pipeline, from one run of all agents."""
    paths, seconds = run_decentralised(levels, count, MOST_OPERATORS, TARGETS, knows_utilisation=knows_utilisation)
    result = {}
    for at, target in enumerate(TARGETS):
        for operators in range(1, MOST_OPERATORS + 1):
            late = violations(count, operators, objective_s(operators))
            year = judge(levels, paths[:, at, :operators], late, seconds)
            result[run_decentralised_years(target, suffix), operators] = summary(year, operators)
        if knows_utilisation:
            late = violations(count, OPERATORS, FITTED_RESPONSE_S)
            year = judge(levels, paths[:, at, :OPERATORS], late, seconds)
            result[run_decentralised_years(target, FITTED), OPERATORS] = summary(year, OPERATORS)
    return result
