"""Full operators, which cannot grow: no size of the job gives what they lack, so they do not decide on the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from models.policies.evaluation.controller_memory import ControllerMemory
from models.policies.job_snapshot import Snapshot
from models.policies.tidewise.measurements import utilisation
from models.policies.tuning.reading import Reading
from models.scheduling.need import upper_limits
from models.scheduling.shortage import explain_limit


def list_limits(snapshot: Snapshot) -> dict[str, int]:
    """Return operator -> highest admissible parallelism."""
    limits = upper_limits(snapshot.graph, snapshot.slots_max).tolist()
    return dict(zip(snapshot.graph.names, limits, strict=True))


def find_full(snapshot: Snapshot, parallelism: Mapping[str, int]) -> frozenset[str]:
    """Return the operators that cannot be larger than they are at a parallelism."""
    return frozenset(name for name, most in list_limits(snapshot).items() if parallelism.get(name, 0) >= most)


def find_stuck(snapshot: Snapshot, reading: Reading | None, memory: ControllerMemory) -> tuple[str, ...]:
    """Return the operators that are full and get more than they can process."""
    if reading is None:
        return ()
    full = find_full(snapshot, snapshot.running)
    return tuple(name for name in snapshot.graph.names if name in full and _use(snapshot, reading, memory, name) > 1.0)


def growable_utilisation(snapshot: Snapshot, reading: Reading, memory: ControllerMemory) -> float:
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


def describe_stuck(snapshot: Snapshot, reading: Reading, memory: ControllerMemory, stuck: tuple[str, ...]) -> str:
    """Return what is short and cannot grow, how short, and what would help, to follow another reason; or nothing."""
    limits = list_limits(snapshot)
    return "".join(
        f"; {name} cannot grow and is short ({100 * _use(snapshot, reading, memory, name):.0f}% of what it can do): "
        + explain_limit(snapshot.graph.operators[snapshot.graph.position(name)], limits[name])
        for name in stuck
    )


def _use(snapshot: Snapshot, reading: Reading, memory: ControllerMemory, name: str) -> float:
    alone = replace(reading, required_per_s={name: reading.required_per_s[name]})
    return utilisation(snapshot, alone, memory)
