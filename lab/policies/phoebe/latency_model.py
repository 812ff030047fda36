"""M_L of Phoebe, Section III-D: the latency of a scale-out at a throughput, and whether such a latency is normal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lab.policies.phoebe.capacity_profile import LatencyClasses, ProfiledLatency
from lab.profiling.rows import Measurement
from models.arrays import Floats, Ints
from models.policies.observations import Latency

FEWEST_ROWS = 3


@dataclass(frozen=True, slots=True)
class LatencyRegression:
    """Regression of the latency and the clusters of measured latencies, refitted together."""

    regression: ProfiledLatency
    classes: LatencyClasses

    def predict(self, scale_outs: npt.ArrayLike, throughput_per_s: float) -> tuple[Floats, Ints]:
        """Return latencies in ms and their classes (0 normal, 1 abnormal), (n,) each, at one throughput."""
        latency = self.regression.latency_ms(scale_outs, throughput_per_s)
        return latency, self.classes.classify(latency)


def fit(rows: Iterable[Measurement], *, seed: int = 0) -> LatencyRegression | None:
    """Fit on the rows of the profile and those measured since; None when there are too few.

    Rows without a finite latency and throughput are left out.

    Deviation: the paper clusters "the predicted latencies", which would make two clusters of an evaluation whose
    scale-outs are all normal, too.  As in the prototype the measured ones are clustered, of which the profile's last
    steps are saturated; a prediction belongs to the cluster that its nearest centroid is of.

    Args:
        rows: any order, all of one kind of latency.
        seed: of the trees, which it moves only where splits tie.
    """
    usable = tuple(row for row in rows if _is_usable(row))
    return _fit(usable, seed) if len(usable) >= FEWEST_ROWS else None


def rows_of_one_latency(profile: Sequence[Measurement], samples: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """Return the rows of the profile and those measured since, all with a latency of the same thing.

    An age of outstanding records is near zero where an end-to-end latency has what an idle job needs for a record:
    fitted together as they are they would make two clusters of kinds in place of normal and abnormal. So an age beside
    a profile of end-to-end latencies is at least the smallest of these.

    Deviation: the paper's latencies are all measured end to end.

    Args:
        profile: whose more frequent kind counts, end to end where both are as frequent; its rows of the other are
            left out.
        samples: oldest first.
    """
    usable = [row for row in profile if _is_usable(row)]
    if not usable:
        return ()
    kinds = Counter(row.latency for row in usable)
    kind = max(Latency, key=lambda one: kinds[one])  # the first of equal ones
    rows = [row for row in profile if row.latency is kind]
    if kind is Latency.BACKLOG_AGE:
        return (*rows, *(row for row in samples if row.latency is kind))
    base_ms = min(row.latency_ms for row in usable if row.latency is kind)
    return (*rows, *(row if row.latency is kind else _with_base(row, base_ms) for row in samples))


def _with_base(row: Measurement, base_ms: float) -> Measurement:
    return replace(row, latency=Latency.END_TO_END, latency_ms=max(row.latency_ms, base_ms))


def _is_usable(row: Measurement) -> bool:
    return bool(np.isfinite([row.throughput_per_s, row.latency_ms]).all())


@lru_cache(maxsize=32)  # called again every minute with the same rows, of several jobs in turn
def _fit(rows: tuple[Measurement, ...], seed: int) -> LatencyRegression:
    scale_out = np.array([row.scale_out for row in rows], float)
    throughput = np.array([row.throughput_per_s for row in rows], float)
    latency = np.array([row.latency_ms for row in rows], float)
    regression = ProfiledLatency.fit(scale_out, throughput, latency, seed=seed)
    return LatencyRegression(regression, LatencyClasses.fit(latency))
