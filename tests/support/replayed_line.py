"""A job of three operators in a row, and its load of days, that tests of the replay share."""

from __future__ import annotations

import numpy as np

from lab.replay.workload import Workload
from lab.simulation.spec import JobSpec, OperatorSpec

MONDAY = 1_709_510_400  # 2024-03-04 00:00 UTC
LINE = JobSpec(
    "line",
    (
        OperatorSpec("in", (), 1000.0, contention=0.0),
        OperatorSpec("work", ("in",), 100.0, contention=0.02, selectivity=0.5),
        OperatorSpec("out", ("work",), 500.0, contention=0.0, selectivity=0.0),
    ),
    slots_max=16,
)


def workload(days: float, start_s: int = MONDAY) -> Workload:
    """Return a load that goes up and down once a day."""
    at = np.arange(round(days * 8640)) * 10.0
    return Workload(LINE, start_s, 10, (500.0 + 250.0 * np.sin(2 * np.pi * at / 86400))[:, None])
