"""Sections 5.4 and 5.5: how many steps DS2 takes from any start, and whether it ends at the smallest parallelism."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.papers.cells import Cell
from benchmarks.papers.ds2.drive import Driver
from benchmarks.papers.ds2.ds2_published import AS_PUBLISHED, PUBLISHED
from benchmarks.papers.ds2.nexmark import CURVES, Q11_AS_Q5, QUERIES, SLOTS, job, source_rates
from lab.policies.ds2.ds2_options import ManagerOptions
from lab.policies.ds2.ds2_policy import Ds2
from lab.simulation.spec import JobSpec
from lab.simulation.testbed import Testbed
from models.arrays import Floats, Ints

INTERVAL_S = 30.0
REDEPLOY_S = (30.0,)
OPTIONS = dataclasses.replace(AS_PUBLISHED, warm_up_intervals=1, activation_intervals=5)
# One instance less is a change too: what the policy indicates, whether or not it is worth a redeployment.
INDICATED = dataclasses.replace(OPTIONS, minor_down=0)
# The text names 8 (Q5) and 12 (Q1) of the six.
STARTS = (8, 12, 16, 20, 24, 28)
EVERY_START = tuple(range(1, SLOTS + 1))
# Redeployment, warm-up and activation of one step.
_INTERVALS_OF_A_STEP = 1 + OPTIONS.warm_up_intervals + OPTIONS.activation_intervals
_MOST_STEPS = 12
# Rows of the tables.
_BY_STEPS = ("0 steps", "1 step", "2 steps", "3 steps", "4 steps or more")
_MOST_OF_SIX, _MOST_OF_ALL = "most steps, six starts", "most steps, any start of 1-36"
_MOST_OF_Q11 = "most steps, Q11 on the curve of Q5"
_AT_SMALLEST, _BELOW, _ABOVE = "at the smallest without backpressure", "below it", "furthest above it"
_WIDTH = 3


@dataclass(frozen=True, slots=True)
class Run:
    """One query from one start.

    Attributes:
        path: parallelism of the main operator at the start and after each step.
        smallest: without backpressure.
    """

    path: tuple[int, ...]
    smallest: int

    @property
    def steps(self) -> int:
        """Reconfigurations."""
        return len(self.path) - 1

    @property
    def above(self) -> int:
        """Instances above the smallest parallelism at the end."""
        return self.path[-1] - self.smallest


Runs = Mapping[tuple[str, int], Run]


def runs(options: ManagerOptions, starts: Sequence[int] = EVERY_START) -> Runs:
    """Run every query from some parallelisms until nothing changes.

    The paper's runs last five minutes, less than two steps of a warm-up and five intervals; these last as long as the
    decisions change.

    Returns:
        (query, start) -> run.
    """
    keys, specs, start_at, rates = _fleet(starts)
    driver = Driver(specs, start_at, Ds2(options), window_s=INTERVAL_S, redeploy_s=REDEPLOY_S, step_s=INTERVAL_S)
    for _ in range(_MOST_STEPS):
        before = sum(map(len, driver.actions))
        for _ in range(_INTERVALS_OF_A_STEP):
            driver.interval(rates)
        if sum(map(len, driver.actions)) == before:
            break
    least = smallest()
    return {
        key: Run((key[1], *(action.parallelism[-1] for action in driver.actions[row])), least[key[0]])
        for row, key in enumerate(keys)
    }


def smallest() -> dict[str, int]:
    """Return query -> smallest parallelism of its main operator that does not hold a source back, tried one by one."""
    keys, specs, at, rates = _fleet(EVERY_START)
    window = Testbed(specs, at, step_s=INTERVAL_S, has_buffers=False).run(rates, INTERVAL_S)
    held_back = np.asarray((window.backpressured > 0.0).any(axis=1))
    return {
        query: min(p for row, (one, p) in enumerate(keys) if one == query and not held_back[row]) for query in CURVES
    }


def _fleet(starts: Sequence[int]) -> tuple[list[tuple[str, int]], list[JobSpec], Ints, Floats]:
    """Return (query, start), job, parallelism (J, O) and source rates (J, O) of every query at every start."""
    keys = [(query, start) for query in CURVES for start in starts]
    specs = [job(query, f"{query}-{start}") for query, start in keys]
    at = np.ones((len(keys), _WIDTH), np.int64)
    for row, ((_, start), spec) in enumerate(zip(keys, specs, strict=True)):
        at[row, len(spec.operators) - 1] = start
    return keys, specs, at, np.stack([source_rates(query, _WIDTH) for query, _ in keys])


def cells(result: Runs, indicated: Runs) -> list[Cell]:
    """Return the figures of both sections.

    Args:
        result: with the minor changes that the code ignores.
        indicated: without ignoring any.
    """
    columns = {"as in the code": _figures(result), "no change ignored": _figures(indicated)}
    by_steps: dict[str, int] = PUBLISHED["runs_by_steps"]
    rows: list[tuple[str, str, float | None, str]] = [
        *(("4", name, by_steps.get(name[0], 0), "runs of 36") for name in _BY_STEPS),
        ("4", _MOST_OF_SIX, PUBLISHED["max_steps"], "steps"),
        ("4", _MOST_OF_ALL, None, "steps"),
        ("4", _MOST_OF_Q11, None, "steps"),
        ("5.5", _AT_SMALLEST, len(QUERIES) * len(STARTS), "runs of 36"),
        ("5.5", _BELOW, 0, "runs of 36"),
        ("5.5", _ABOVE, 0, "instances"),
    ]
    return [
        Cell("ds2", table, row, column, figures[row], published, unit)
        for table, row, published, unit in rows
        for column, figures in columns.items()
    ]


def _figures(every: Runs) -> dict[str, int]:
    """Return row -> figure."""
    six = [every[query, start] for query in QUERIES for start in STARTS]
    counts = Counter(min(run.steps, len(_BY_STEPS) - 1) for run in six)
    return {name: counts[steps] for steps, name in enumerate(_BY_STEPS)} | {
        _MOST_OF_SIX: max(run.steps for run in six),
        _MOST_OF_ALL: _most(every, QUERIES),
        _MOST_OF_Q11: _most(every, [Q11_AS_Q5]),
        _AT_SMALLEST: sum(run.above == 0 for run in six),
        _BELOW: sum(run.above < 0 for run in six),
        _ABOVE: max(run.above for run in six),
    }


def _most(every: Runs, queries: Sequence[str]) -> int:
    return max(run.steps for (query, _), run in every.items() if query in queries)
