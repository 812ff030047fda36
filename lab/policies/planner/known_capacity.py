"""What observed capacities mean for the reactive controller: headroom, utilisation, ContTune's step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from lab.policies.planner.controller_memory import ControllerMemory
from lab.policies.tuning.observed_capacity import capacity_at
from lab.policies.tuning.small import OperatorProblem, propose
from lab.scheduling.planner_settings import PlannerSettings
from models.policies.job_snapshot import Snapshot
from models.policies.tidewise.full_operators import find_full
from models.policies.tidewise.measurements import LATEST, utilisation
from models.policies.tuning.capacity_history import History
from models.policies.tuning.reading import MeanMetrics
from models.scheduling.even_shares import align_shares
from models.scheduling.need import upper_limits


def known_headroom(
    snapshot: Snapshot,
    memory: ControllerMemory,
    parallelism: Mapping[str, int],
    capacity_of: Callable[[History, int], float] = capacity_at,
) -> float | None:
    """Return capacity over load at a parallelism from the observations there; None without any.

    The windows of a restart are disturbed, but their load is valid: arrivals are counted at the broker.
    """
    last = snapshot.observations.rows(
        np.arange(max(len(snapshot.observations) - LATEST, 0), len(snapshot.observations))
    )
    arriving = last.target_data_rate_per_s
    if (
        not len(last)
        or not np.isfinite(arriving[-1][[snapshot.graph.position(name) for name in snapshot.graph.sources]]).all()
    ):
        return None
    load = sum(float(arriving[-1][snapshot.graph.position(name)]) for name in snapshot.graph.sources)
    headroom_ratios = []
    for name, share in memory.shares.items():
        capacity = capacity_of(memory.histories.get(name, ()), parallelism.get(name, 0))
        if math.isfinite(capacity) and share * load > 0:
            headroom_ratios.append(capacity / (share * load))
    return min(headroom_ratios) if headroom_ratios else None


def conttune_step(snapshot: Snapshot, reading: MeanMetrics, memory: ControllerMemory) -> dict[str, int]:
    """Return ContTune's step for the present load, at the target utilisation with a plan or without one."""
    reactive = PlannerSettings.of(snapshot.options).reactive
    target = reactive.utilisation_target if memory.planned else reactive.unplanned_utilisation_target
    names = snapshot.graph.names
    limits = dict(zip(names, upper_limits(snapshot.graph, snapshot.slots_max).tolist(), strict=True))
    problems = [
        OperatorProblem(
            history=memory.histories.get(name, ()),
            required_per_s=reading.required_per_s[name] / target,
            parallelism=snapshot.running[name],
            capacity_per_s=reading.capacity_per_s[name],
            p_max=limits[name],
        )
        for name in names
    ]
    suggestions = propose(problems)
    wanted = [min(suggestion.parallelism, limits[name]) for name, suggestion in zip(names, suggestions, strict=True)]
    running = np.array([snapshot.running[name] for name in names], np.int64)
    return dict(zip(names, align_shares(snapshot.graph, np.array([wanted]), running)[0].tolist(), strict=True))


def growable_utilisation(snapshot: Snapshot, reading: MeanMetrics, memory: ControllerMemory) -> float:
    """Return the highest utilisation of the operators that could grow; 0 where none could, or none is known."""
    full = find_full(snapshot, snapshot.running)
    remaining = {name: need for name, need in reading.required_per_s.items() if name not in full}
    return utilisation(snapshot, replace(reading, required_per_s=remaining), memory) if remaining else 0.0


def without_full(snapshot: Snapshot, memory: ControllerMemory, parallelism: Mapping[str, int]) -> ControllerMemory:
    """Return a memory whose headroom is that of the operators that are not full at a parallelism.

    Where all are full it is left as it is.
    """
    full = find_full(snapshot, parallelism)
    remaining = {name: share for name, share in memory.shares.items() if name not in full}
    return replace(memory, shares=remaining) if remaining else memory
