"""The workload of the next 600 s at 1 Hz from the rate so far: a direct multi-step forecast by ridge regression.

Deviation: the prototype combines 20 ARIMA models on histories thinned by 30, 60, ..., 600 s and smooths what they
predict.  Here the same horizons of 30, 60, ..., 600 s are predicted by one ridge regression each, on trailing means of
the rate; they share one matrix and are refitted in milliseconds.  Interpolation to 1 Hz and the smoothing of 120 s
around every second are the prototype's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import uniform_filter1d
from sklearn.linear_model import Ridge

from models.arrays import Floats


@dataclass(frozen=True, slots=True)
class ForecastOptions:
    """Settings.

    Attributes:
        horizon_s: H_max.
        bin_s: rates are averaged over it before anything else.
        trailing_bins: the features are the means over the last so many bins.
        smooth_s: width of the moving mean over the prediction.
        penalty: of the ridge regression, on rates relative to the highest one.
    """

    horizon_s: int = 600
    bin_s: int = 30
    trailing_bins: tuple[int, ...] = (1, 2, 4, 8, 12, 16, 20)
    smooth_s: int = 120
    penalty: float = 1e-2

    @property
    def steps(self) -> int:
        """Predicted bins."""
        return self.horizon_s // self.bin_s


class MultistepForecast:
    """A fitted forecaster; see :meth:`fit`."""

    def __init__(self, ridge: Ridge, scale_per_s: float, options: ForecastOptions) -> None:
        self._ridge = ridge
        self._scale_per_s = scale_per_s
        self._options = options

    @classmethod
    def fit(cls, stretches: Sequence[Floats], options: ForecastOptions | None = None) -> MultistepForecast:
        """Learn from stretches of history; one that is shorter than features and horizon together adds nothing.

        Args:
            stretches: each (T,) records/s, one value per second without gaps.
            options: None for the defaults.

        Raises:
            ValueError: no stretch is long enough.
        """
        chosen = options or ForecastOptions()
        parts = [_examples(_bin_means(stretch, chosen.bin_s), chosen) for stretch in stretches]
        features = np.concatenate([part[0] for part in parts])
        targets = np.concatenate([part[1] for part in parts])
        if not len(features):
            needed = chosen.bin_s * (max(chosen.trailing_bins) + chosen.steps)
            raise ValueError(f"no stretch of history reaches the {needed} s that one example needs")
        scale = max(float(features.max()), np.finfo(float).tiny)
        ridge = Ridge(alpha=chosen.penalty).fit(features / scale, targets / scale)
        return cls(ridge, scale, chosen)

    def ahead(self, recent_per_s: Floats) -> Floats:
        """Return (horizon_s,) records/s, never negative, for the seconds after ``recent_per_s``.

        Args:
            recent_per_s: (T,) at least one value; what is missing of the longest feature counts as the first value.
        """
        options = self._options
        reach = options.bin_s * max(options.trailing_bins)
        recent = np.asarray(recent_per_s, float)[-reach:]
        recent = np.pad(recent, (reach - len(recent), 0), mode="edge")
        bins = _bin_means(recent, options.bin_s)
        features = _trailing(bins, options.trailing_bins)[-1:] / self._scale_per_s
        steps = self._ridge.predict(features)[0] * self._scale_per_s
        middles = options.bin_s * (np.arange(-1, options.steps) + 0.5)
        path = np.interp(np.arange(options.horizon_s) + 0.5, middles, np.concatenate([bins[-1:], steps]))
        return np.asarray(np.maximum(uniform_filter1d(path, options.smooth_s, mode="nearest"), 0.0), float)


def _bin_means(rate_per_s: Floats, bin_s: int) -> Floats:
    """Return means over bins that end with the last value."""
    whole = len(rate_per_s) // bin_s * bin_s
    tail = np.asarray(rate_per_s, float)[len(rate_per_s) - whole :]
    return np.asarray(tail.reshape(-1, bin_s).mean(axis=1))


def _trailing(bins: Floats, lengths: Sequence[int]) -> Floats:
    """Return (n, features) means over the last so many bins, for every bin that the longest of them reaches."""
    longest = max(lengths)
    sums = np.concatenate([[0.0], np.cumsum(bins)])
    ends = np.arange(longest, len(bins) + 1)
    return np.stack([(sums[ends] - sums[ends - length]) / length for length in lengths], axis=1)


def _examples(bins: Floats, options: ForecastOptions) -> tuple[Floats, Floats]:
    """Return features (n, F) and the bins that followed (n, steps)."""
    longest, steps = max(options.trailing_bins), options.steps
    count = len(bins) - longest - steps + 1
    if count < 1:
        return np.zeros((0, len(options.trailing_bins))), np.zeros((0, steps))
    targets = np.lib.stride_tricks.sliding_window_view(bins, steps)[longest:]
    return _trailing(bins, options.trailing_bins)[:count], targets[:count]
