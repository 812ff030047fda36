"""What the windows that show the present tell of a job, and what they do not: read once for every rule that asks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from models.policies.evaluation.window_memory import MemoryT
from models.policies.job_snapshot import Snapshot
from models.policies.tidewise.measurements import edge_windows, latest_windows
from models.policies.tidewise.unseen import MissingMetrics, find_unseen, leave_out
from models.policies.tuning.reading import MeanMetrics, read_windows


@dataclass(frozen=True, slots=True)
class JobReading:
    """A job as its latest undisturbed windows show it.

    Attributes:
        reading: without what is not known; None without such a window.
        unseen: what they do not tell.
        load_per_s: of all sources, records/s; NaN when it is not known.
    """

    reading: MeanMetrics | None
    unseen: MissingMetrics
    load_per_s: float


def read_present(snapshot: Snapshot, memory: MemoryT) -> tuple[JobReading, MemoryT]:
    """Return what the windows tell, and the memory with the share of the load that each operator gets."""
    windows, of_edges = latest_windows(snapshot), edge_windows(snapshot)
    reading = read_windows(snapshot.graph, windows, snapshot.running, of_edges=of_edges)
    if reading is None:
        return JobReading(None, MissingMetrics(), math.nan), memory
    unseen = find_unseen(snapshot, reading, windows, of_edges)
    load = sum(reading.required_per_s[name] for name in snapshot.graph.sources)
    if load > 0:
        shares = {name: need / load for name, need in reading.required_per_s.items() if math.isfinite(need)}
        memory = replace(memory, shares=shares)
    return JobReading(leave_out(reading, unseen), unseen, load), memory
