"""The experiment: loads, times, and what is compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

LOW, HIGH = 0.9, 4.0
STEPS = ((LOW, 0.2), (HIGH, 0.4), (LOW, 0.4))
"""(multiple of the query's unit load, share of the time): one subtask, several, and one again."""
FLOOD = 1.4 * HIGH
"""Load under which up to ``MOST`` subtasks cannot keep up, so that what they process is their capacity."""
MOST = 4
WINDOW_S, POLL_EVERY_S, DECIDE_EVERY_S = 10, 5.0, 20
SETTLES_S = 30.0
"""After a step of the load or a rescale: what is measured in it belongs to neither."""
BUSY_ENOUGH = 0.4
TIDEWISE = "tidewise"
RIVALS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "ds2": ("ds2", {"policy_interval_s": 30.0}),
    "conttune": ("conttune_a3", {}),
    "autoscaler": (
        "flink_autoscaler",
        {
            "metrics_window_s": 60.0,
            "stabilization_interval_s": 20.0,
            "scale_down_interval_s": 60.0,
            "restart_time_s": 30.0,
            "catch_up_duration_s": 300.0,
        },
    ),
}
"""Name of the job's end -> policy and parameters other than its defaults: its times are those of the load steps."""


def job_name(query: str, policy: str) -> str:
    """Return the name of the job of a query that a policy decides on."""
    return f"{query}-{policy}"


def make_trace(unit_per_s: float, seconds: float) -> tuple[tuple[int, float], ...]:
    """Return the trace of the load steps; the last one goes on."""
    points, at_s = list[tuple[int, float]](), 0
    for times, share in STEPS:
        length_s = round(share * seconds)
        points += [(at_s, unit_per_s * times), (at_s + length_s - 1, unit_per_s * times)]
        at_s += length_s
    return (*points, (at_s + 7200, unit_per_s * STEPS[-1][0]))


def find_step(elapsed_s: float, seconds: float) -> int:
    """Return the number of the load step at a time; the last one goes on."""
    for number, (_, share) in enumerate(STEPS):
        if elapsed_s < share * seconds:
            return number
        elapsed_s -= share * seconds
    return len(STEPS) - 1


@dataclass(slots=True)
class Truth:
    """What a query's job can do, and what it has to, by vertex id.

    Attributes:
        names: of the vertices.
        costly: the vertex that limits the job.
        capacity_per_s: parallelism of the costly vertex -> its records/s in when it is saturated; where it was not,
            they are divided by its busy share.
        saturated: parallelism -> whether it was: busy, or its source held up.
        job_per_s: parallelism -> events/s of the job then.
        inflow_per_s: multiple of the unit load -> vertex id -> records/s in while the job keeps up.
        busy: the same for the busy share, with ``MOST`` subtasks of what costs.
    """

    names: dict[str, str] = field(default_factory=dict)
    costly: str = ""
    capacity_per_s: dict[int, float] = field(default_factory=dict)
    saturated: dict[int, bool] = field(default_factory=dict)
    job_per_s: dict[int, float] = field(default_factory=dict)
    inflow_per_s: dict[float, dict[str, float]] = field(default_factory=dict)
    busy: dict[float, dict[str, float]] = field(default_factory=dict)

    def least(self, load: float) -> int | None:
        """Return the least parallelism of the costly vertex that sustains a load; None when none measured does."""
        need = self.inflow_per_s[load].get(self.costly, float("nan"))
        enough = [p for p, capacity in sorted(self.capacity_per_s.items()) if capacity >= need]
        return enough[0] if enough and math.isfinite(need) else None

    def used(self, load: float) -> float:
        """Return the share of the capacity of the least parallelism that a load uses; NaN when none sustains it."""
        least = self.least(load)
        return math.nan if least is None else self.inflow_per_s[load][self.costly] / self.capacity_per_s[least]


@dataclass(slots=True)
class JobTrial:
    """What happened to one job.

    Attributes:
        wanted: (load step, parallelism of the costly vertex, most of any vertex) of each change sent.
        ends: parallelism of the costly vertex at the end of each step.
        pending: backlog at the end of each step, records.
        advised: (load step, parallelism of the costly vertex) of the advice of Flink's autoscaler's own process.
        said: (load step, reason) in the control log, for Tidewise.
        rates: (load step, vertex id, records/s in as measured, by the job's own counters) of each settled window.
        arrivals: (load step, source's measured arrivals/s).
        capacities: (parallelism, busy share, measured capacity of the costly vertex/s).
    """

    wanted: list[tuple[int, int, int]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    pending: list[float] = field(default_factory=list)
    advised: list[tuple[int, int]] = field(default_factory=list)
    said: list[tuple[int, str]] = field(default_factory=list)
    rates: list[tuple[int, str, float, float]] = field(default_factory=list)
    arrivals: list[tuple[int, float]] = field(default_factory=list)
    capacities: list[tuple[int, float, float]] = field(default_factory=list)
