"""Full operators, which cannot grow: no size of the job gives what they lack, so they do not decide on the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from models.policies.evaluation.window_memory import WindowMemory
from models.policies.job_snapshot import Snapshot
from models.policies.tidewise.measurements import utilisation
from models.policies.tuning.reading import MeanMetrics
from models.scheduling.need import upper_limits
from models.scheduling.shortage import explain_limit


def list_limits(snapshot: Snapshot) -> dict[str, int]:
    """Return operator -> highest admissible parallelism."""
    limits = upper_limits(snapshot.graph, snapshot.slots_max).tolist()
    return dict(zip(snapshot.graph.names, limits, strict=True))


def find_full(snapshot: Snapshot, parallelism: Mapping[str, int]) -> frozenset[str]:
    """Return the operators that cannot be larger than they are at a parallelism."""
    return frozenset(name for name, most in list_limits(snapshot).items() if parallelism.get(name, 0) >= most)


def find_stuck(snapshot: Snapshot, reading: MeanMetrics | None, memory: WindowMemory) -> tuple[str, ...]:
    """Return the operators that are full and get more than they can process."""
    if reading is None:
        return ()
    full = find_full(snapshot, snapshot.running)
    return tuple(name for name in snapshot.graph.names if name in full and _use(snapshot, reading, memory, name) > 1.0)


def describe_stuck(snapshot: Snapshot, reading: MeanMetrics, memory: WindowMemory, stuck: tuple[str, ...]) -> str:
    """Return what is short and cannot grow, how short, and what would help, to follow another reason; or nothing."""
    limits = list_limits(snapshot)
    return "".join(
        f"; {name} cannot grow and is short ({100 * _use(snapshot, reading, memory, name):.0f}% of what it can do): "
        + explain_limit(snapshot.graph.operators[snapshot.graph.position(name)], limits[name])
        for name in stuck
    )


def _use(snapshot: Snapshot, reading: MeanMetrics, memory: WindowMemory, name: str) -> float:
    alone = replace(reading, required_per_s={name: reading.required_per_s[name]})
    return utilisation(snapshot, alone, memory)
