"""Scale-downs of a job without a plan: at the break-even, when the saved slots would have paid for two rescales.

A ski-rental rule: nobody knows how long a low-load period will last, so a scale-down is sent when waiting has cost as
much as an unnecessary one would.  Many slots are released soon, a single one after hours, and never more than the
highest load of the period allows; a load that jumps up and down every few minutes keeps what its peaks need.

With the defaults and a rescale that makes nothing late, of a job that has all of its 32 slots:

| slots too many | 1 | 2 | 4 | 8 | 16 |
| --- | --- | --- | --- | --- | --- |
| given back after | 128 min | 64 min | 32 min | 16 min | 8 min |

Twice as long where a rescale stops the job for two minutes.
"""

from __future__ import annotations

from collections.abc import Mapping

from include.domain.graph import JobGraph
from include.utc import MINUTE_S
from lab.policies.planner.controller_memory import LowLoadPeriod
from lab.scheduling.planner_settings import PlannerSettings


def update_low_loads(
    low_loads: tuple[LowLoadPeriod, ...], need: Mapping[str, int], now_s: int, graph: JobGraph
) -> tuple[LowLoadPeriod, ...]:
    """Return the low-load periods after an evaluation at which ``need`` was enough, by falling slots and rising times.

    Those of fewer slots are over; the others go on, with the most that each operator needed meanwhile.

    >>> from include.domain.graph import Operator
    >>> graph = JobGraph((Operator("map"),))
    >>> low = update_low_loads((), {"map": 4}, 0, graph)
    >>> low = update_low_loads(low, {"map": 6}, 600, graph)
    >>> low = update_low_loads(low, {"map": 5}, 1200, graph)
    >>> [(dict(one.parallelism), one.since_s) for one in low]
    [({'map': 6}, 600), ({'map': 5}, 1200)]
    """
    slots = graph.slots_of(need)
    going_on = tuple(
        LowLoadPeriod(
            {name: max(most, low_load.parallelism.get(name, most)) for name, most in need.items()}, low_load.since_s
        )
        for low_load in low_loads
        if graph.slots_of(low_load.parallelism) >= slots
    )
    if going_on and graph.slots_of(going_on[-1].parallelism) == slots:
        return going_on
    return (*going_on, LowLoadPeriod(dict(need), now_s))


def break_even_scale_down(
    low_loads: tuple[LowLoadPeriod, ...],
    running: Mapping[str, int],
    now_s: int,
    slots_max: int,
    *,
    graph: JobGraph,
    downtime_s: float,
    options: PlannerSettings,
) -> LowLoadPeriod | None:
    """Return the low-load period that would have saved most, if that is the cost of two rescales; None without one.

    Args:
        low_loads: of the job.
        running: operator -> parallelism.
        now_s: epoch seconds.
        slots_max: most slots of the job.
        graph: of the job, for the slots that a configuration takes.
        downtime_s: expected of a rescale; the job is late for what is beyond ``costs.late_after_s``.
        options: the planner's settings.

    >>> from include.domain.graph import Operator
    >>> low, graph = (LowLoadPeriod({"map": 8}, since_s=0),), JobGraph((Operator("map"),))
    >>> running, settings = {"map": 16}, PlannerSettings()
    >>> for minutes in (15, 16):
    ...     found = break_even_scale_down(
    ...         low, running, 60 * minutes, 32, graph=graph, downtime_s=30.0, options=settings
    ...     )
    ...     print(minutes, found and dict(found.parallelism))
    15 None
    16 {'map': 8}
    """
    slots = graph.slots_of(running)
    price = options.costs.resource_weight / slots_max / 60  # of a slot for a second
    fewer = [(slots - graph.slots_of(low_load.parallelism), low_load) for low_load in low_loads]
    saved = [(count * price * (now_s - low_load.since_s), low_load) for count, low_load in fewer if count > 0]
    if not saved:
        return None
    most, best = max(saved, key=lambda pair: pair[0])
    late_min = max(downtime_s - options.costs.late_after_s, 0.0) / MINUTE_S
    rescale = options.costs.rescale_weight + options.costs.late_weight * late_min
    return best if most >= 2 * rescale * options.reactive.scale_down_margin else None
