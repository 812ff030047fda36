"""Section 5.3: DS2 drives the word count on Flink through a rise and a fall of its rate (Fig. 7)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.papers.cells import Cell
from benchmarks.papers.ds2.drive import Action, Driver
from benchmarks.papers.ds2.ds2_published import AS_PUBLISHED, PUBLISHED
from lab.policies.ds2.ds2_policy import Ds2
from lab.simulation.spec import JobSpec, OperatorSpec
from models.arrays import Floats

INTERVAL_S = 10.0
OPTIONS = dataclasses.replace(AS_PUBLISHED, warm_up_intervals=3)
SLOTS = 36
END_S = 1400.0
# Share of its contended capacity from which an operator counts as saturated.
SATURATED = 0.9


@dataclass(frozen=True, slots=True)
class Contention:
    """An operator whose instances get slower when many of them are saturated: r0 (1 - c [saturated and p > p0]).

    No curve over p alone gives the published steps: 19 instances under 1M/s are faster than 14 under 2M/s.

    Attributes:
        rate_per_s: r0, sentences/s of one instance (Count's too: its words per sentence cancel out).
        loss: c.
        free: p0.
    """

    rate_per_s: float
    loss: float
    free: int

    def capacity_per_s(self, offered_per_s: float, p: int) -> float:
        """Return PA(p) while so much is offered."""
        contended = p * self.rate_per_s * (1.0 - self.loss)
        if p > self.free and offered_per_s >= SATURATED * contended:
            return contended
        return p * self.rate_per_s


# Calibrated on the published steps themselves: ceil(rate / r) is given at (p, rate).
# FlatMap: 14 at (10, 2M), 19 at (14, 2M), 7 at (19, 1M), so r is 143-154K, 105-111K, 143-167K.
# Count: 7 at (5, 2M), 11 at (7, 2M), 4 at (11, 1M), so r is 286-333K, 182-200K, 250-333K; the middle of the first two.
# Its last step, 5 at (4, 1M), asks for 200-250K, less than 5 saturated instances did: no such constants give it.
OPERATORS: Mapping[str, Contention] = {
    "FlatMap": Contention(147e3, 0.27, 12),
    "Count": Contention(309e3, 0.38, 6),
}


def rate_at(time_s: float) -> float:
    """Return sentences/s of the source."""
    first, second = PUBLISHED["flink_wordcount"]["rate_per_s"]
    return float(first if time_s < PUBLISHED["flink_wordcount"]["rate_changes_s"] else second)


def run() -> tuple[list[Action], Floats]:
    """Return DS2's actions, and one row per interval: end, sentences/s emitted, instances of FlatMap and Count."""
    driver = Driver(
        [_spec()],
        np.array([[1, *PUBLISHED["flink_wordcount"]["start"]]]),
        Ds2(OPTIONS),
        window_s=INTERVAL_S,
        redeploy_s=PUBLISHED["flink_wordcount"]["redeploy_s"],
    )
    rows = []
    while driver.testbed.time_s < END_S:
        rate = rate_at(driver.testbed.time_s)
        _contend(driver, rate)
        driver.interval(np.array([[rate, 0.0, 0.0]]))
        window = driver.windows[-1]
        rows.append((driver.testbed.time_s, window.in_per_s[0, 0], *window.parallelism[0, 1:]))
    return driver.actions[0], np.array(rows, float)


def cells(actions: list[Action]) -> list[Cell]:
    """Return the figures: one row per action, the published one of the same number beside it."""
    published = PUBLISHED["flink_wordcount"]["actions"]
    units = {"time": "s", "FlatMap": "instances", "Count": "instances"}
    result = []
    for number in range(max(len(actions), len(published))):
        mine = actions[min(number, len(actions) - 1)]
        ours = (mine.at_s, *mine.parallelism[1:])
        theirs = published[number] if number < len(published) else (None,) * len(units)
        for place, (column, unit) in enumerate(units.items()):
            # Without an action of this number the job stays as it was, and there is no time to show.
            if number < len(actions) or column != "time":
                result.append(Cell("ds2", "5.3", f"action {number + 1}", column, ours[place], theirs[place], unit))
    result.append(Cell("ds2", "5.3", "all", "actions", len(actions), len(published), "reconfigurations"))
    return result


def _spec() -> JobSpec:
    first = rate_at(0.0)
    flatmap, count = OPERATORS["FlatMap"].rate_per_s, OPERATORS["Count"].rate_per_s
    operators = (
        OperatorSpec("Source", (), 10 * first, 0.0),
        OperatorSpec("FlatMap", ("Source",), flatmap, 0.0),
        OperatorSpec("Count", ("FlatMap",), count, 0.0, selectivity=0.0),
    )
    return JobSpec("word count", operators, slots_max=SLOTS)


def _contend(driver: Driver, rate_per_s: float) -> None:
    """Set each operator's capacity for its present input, upstream first."""
    testbed, offered = driver.testbed, rate_per_s
    for place, name in enumerate(OPERATORS, start=1):
        p = int(testbed.state.parallelism[0, place])
        capacity = OPERATORS[name].capacity_per_s(offered, p)
        instances = np.arange(testbed.fleet.curves.shape[2], dtype=np.float64)
        testbed.set_capacity(0, place, capacity / p * instances)
        offered = min(offered, capacity)
