"""Windows whose backlogs measure a job's capacity."""

from __future__ import annotations

import numpy as np

from models.policies.job_snapshot import Snapshot
from models.programme.capacity_belief import BacklogChange


def list_backlog_changes(job: Snapshot) -> list[BacklogChange]:
    """Return the undisturbed windows of the running size that follow an undisturbed one, oldest first.

    Only those whose sources all show what arrives: else backpressure hides the load, and no backlog tells the capacity.
    """
    windows, graph = job.observations, job.graph
    if len(windows) < 2:
        return []
    sources = [graph.position(name) for name in graph.sources]
    load = windows.target_data_rate_per_s[:, sources].sum(axis=1)
    waiting = windows.waiting_records[:, sources].sum(axis=1)
    running = np.array([job.running[name] for name in graph.names], np.int64)
    is_now = ((windows.parallelism == running) | (windows.parallelism < 1)).all(axis=1)
    usable = ~windows.disturbed & is_now & np.isfinite(load) & np.isfinite(waiting)
    follows = np.diff(windows.window_start_s) == windows.window_s
    return [
        BacklogChange(
            begin=float(waiting[row - 1]),
            end=float(waiting[row]),
            window_s=float(windows.window_s),
            load_per_s=float(load[row]),
            until_s=float(windows.window_start_s[row] + windows.window_s),
        )
        for row in range(1, len(windows))
        if usable[row] and usable[row - 1] and follows[row - 1]
    ]
