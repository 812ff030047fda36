"""TWRES, the baseline of Phoebe's evaluation: enough throughput for the forecast, nothing about recovery.

Its maximum sustainable throughput is fitted on the same profile: MST(s) = w . [1, s, 1/s, 1/s^2] with w >= 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from models.job_models import Floats
from models.policies.phoebe.options import ABNORMAL_LATENCY_MS, TWRES_WINDOW_S


@dataclass(frozen=True, slots=True)
class SustainableThroughput:
    """MST over the scale-out.

    Attributes:
        weights: (4,) of 1, s, 1/s and 1/s^2, none negative; records/s.
    """

    weights: Floats

    @classmethod
    def fit(cls, scale_out: npt.ArrayLike, capacity_per_s: npt.ArrayLike) -> SustainableThroughput:
        """Fit by non-negative least squares.

        Args:
            scale_out: (n,) workers.
            capacity_per_s: (n,) highest throughput measured there, records/s.
        """
        weights, _ = nnls(_features(scale_out), np.asarray(capacity_per_s, float))
        return cls(np.asarray(weights, float))

    def per_s(self, scale_out: npt.ArrayLike) -> Floats:
        """Return (...) records/s for (...) workers."""
        return np.asarray(_features(scale_out) @ self.weights, float)


def choose(
    throughput: SustainableThroughput,
    scale_outs: Sequence[int],
    current: int,
    *,
    forecast_records: float,
    latency_ms: float,
    window_s: float = TWRES_WINDOW_S,
    abnormal_latency_ms: float = ABNORMAL_LATENCY_MS,
) -> int:
    """Return the scale-out for the next window.

    The smallest that sustains the forecast, else the most capable.  When the current one sustains it already but the
    latency is abnormal, one worker is added instead.

    Args:
        throughput: the fitted model.
        scale_outs: allowed, ascending.
        current: running.
        forecast_records: that arrive in the window; NaN keeps the current scale-out.
        latency_ms: measured now.
        window_s: length of the window.
        abnormal_latency_ms: a higher latency is abnormal.
    """
    if not len(scale_outs) or np.isnan(forecast_records):
        return current
    sustained = throughput.per_s(scale_outs) * window_s
    enough = np.flatnonzero(sustained > forecast_records)
    wanted = scale_outs[int(enough[0] if len(enough) else sustained.argmax())]
    sustains = forecast_records < float(throughput.per_s(current)) * window_s
    if sustains and latency_ms > abnormal_latency_ms:
        return min(current + 1, max(scale_outs))
    return wanted


def _features(scale_out: npt.ArrayLike) -> Floats:
    s = np.asarray(scale_out, float)
    return np.stack([np.ones_like(s), s, 1.0 / s, 1.0 / s**2], axis=-1)
