"""M_L of Phoebe, Section III-D: the latency of a scale-out at a throughput, and whether such a latency is normal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Ints
from models.policies.phoebe.capacity_profile import LatencyClasses, ProfiledLatency
from models.profiling.rows import Measurement

FEWEST_ROWS = 3


@dataclass(frozen=True, slots=True)
class LatencyModel:
    """Regression of the latency and the clusters of measured latencies, refitted together."""

    regression: ProfiledLatency
    classes: LatencyClasses

    def predict(self, scale_outs: npt.ArrayLike, throughput_per_s: float) -> tuple[Floats, Ints]:
        """Return latencies in ms and their classes (0 normal, 1 abnormal), (n,) each, at one throughput."""
        latency = self.regression.latency_ms(scale_outs, throughput_per_s)
        return latency, self.classes.classify(latency)


def fit(rows: Iterable[Measurement], *, seed: int = 0) -> LatencyModel | None:
    """Fit on the rows of the profile and those measured since; None when there are too few.

    Rows without a finite latency and throughput are left out.

    Args:
        rows: any order.
        seed: of the trees, which it moves only where splits tie.
    """
    usable = tuple(row for row in rows if np.isfinite([row.throughput_per_s, row.latency_ms]).all())
    return _fit(usable, seed) if len(usable) >= FEWEST_ROWS else None


@lru_cache(maxsize=8)  # called again every minute with the same rows
def _fit(rows: tuple[Measurement, ...], seed: int) -> LatencyModel:
    scale_out = np.array([row.scale_out for row in rows], float)
    throughput = np.array([row.throughput_per_s for row in rows], float)
    latency = np.array([row.latency_ms for row in rows], float)
    regression = ProfiledLatency.fit(scale_out, throughput, latency, seed=seed)
    return LatencyModel(regression, LatencyClasses.fit(latency))
