"""TWRES, the baseline of Phoebe's evaluation: enough throughput for the forecast, nothing about recovery.

The maximum sustainable throughput is fitted on the same profile: MST(s) = w . [1, s, 1/s, 1/s^2] with w >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from lab.policies.phoebe import phoebe_inputs
from lab.policies.phoebe.learned_models import NO_CAPACITY, LearnedModels
from lab.policies.phoebe.phoebe_options import ABNORMAL_LATENCY_MS, TWRES_WINDOW_S, TwresOptions
from lab.policies.phoebe.settling_policy import SettlingMemory, SettlingPolicy
from lab.profiling.rows import MIN_CAPACITIES, Profile
from models.arrays import Floats
from models.policies.protocol import Situation


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


class Twres(SettlingPolicy[SettlingMemory]):
    """The smallest scale-out whose maximum sustainable throughput covers the forecast, one more when it is late.

    Without a profile the pipeline's capacity curves are sampled instead.  TWRES may go down to one worker.

    Args:
        profile: of the job; without one the pipeline's models are used.
        options: the settings.
    """

    def __init__(self, profile: Profile | None = None, options: TwresOptions | None = None) -> None:
        self._options = options or TwresOptions()
        super().__init__(profile, self._options.evaluation_interval_s)

    def first_memory(self) -> SettlingMemory:
        """Return the memory of a job that was never decided on: it holds the profile."""
        return SettlingMemory(profile=self._profile)

    def _choose(self, situation: Situation, memory: SettlingMemory) -> tuple[int | None, str, SettlingMemory]:
        throughput = _sustainable_throughput(situation, memory.profile)
        if throughput is None:
            return None, NO_CAPACITY, memory
        expected = float(phoebe_inputs.forecast_per_s(situation, int(self._options.window_s)).sum())
        records = (1.0 + self._options.headroom) * expected
        sample = phoebe_inputs.measure(situation)
        workers = choose_sustainable(
            throughput,
            tuple(range(1, situation.slots_max + 1)),
            phoebe_inputs.scale_out(situation),
            forecast_records=records,
            latency_ms=math.nan if sample is None else sample.latency_ms,
            window_s=self._options.window_s,
            abnormal_latency_ms=self._options.abnormal_latency_ms,
        )
        within_s = self._options.window_s
        return workers, f"{records:,.0f} records are expected within {within_s:.0f} s: {workers} workers", memory


def choose_sustainable(
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
    scale_out = scale_outs[int(enough[0] if len(enough) else sustained.argmax())]
    sustains = forecast_records < float(throughput.per_s(current)) * window_s
    if sustains and latency_ms > abnormal_latency_ms:
        return min(current + 1, max(scale_outs))
    return scale_out


def _sustainable_throughput(situation: Situation, profile: Profile) -> SustainableThroughput | None:
    if len(profile.capacity) >= MIN_CAPACITIES:
        return SustainableThroughput.fit(*profile.capacities)
    learned = LearnedModels.of(situation)
    if learned is None:
        return None
    workers = np.arange(1, situation.slots_max + 1)
    return SustainableThroughput.fit(workers, learned.capacity_per_s(workers.tolist()))


def _features(scale_out: npt.ArrayLike) -> Floats:
    s = np.asarray(scale_out, float)
    return np.stack([np.ones_like(s), s, 1.0 / s, 1.0 / s**2], axis=-1)
