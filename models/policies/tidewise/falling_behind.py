"""Whether a job falls behind: what its newest windows are looked at for between two evaluations."""

from __future__ import annotations

import numpy as np

from models.observing.windows import BACKPRESSURED_ABOVE
from models.policies.job_snapshot import Snapshot
from models.policies.tidewise.measurements import count_waiting, lag_s


def falls_behind(job: Snapshot) -> bool:
    """Whether more and more records wait, so that they will be late by the next evaluation.

    Where sources show no backlog, their backpressure says that more arrives than is processed.
    """
    windows, late_after_s = job.observations, job.options.costs.late_after_s
    if not len(windows) or windows.disturbed[-1]:  # what came during a stop tells nothing of a size
        return False
    sources = [job.graph.position(name) for name in job.graph.sources]
    arrives = windows.target_data_rate_per_s[-1, sources]
    before, now = count_waiting(job)
    arrived = max(float(arrives.sum()), 1e-9) * windows.window_s  # NaN of one that is not known
    grows_s = (now - before) / arrived * job.options.timing.apply_every_s
    will_be_late = grows_s > 0 and lag_s(windows) + grows_s > late_after_s
    is_hidden = np.isnan(arrives) & (windows.backpressured_share[-1, sources] > BACKPRESSURED_ABOVE)
    return bool(will_be_late or is_hidden.any())
