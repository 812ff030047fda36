"""The remainder after the season: part of it is a change of level, part of it decays.

r (n, L)   remainder of the last days before an origin, NaN where nothing was measured
r-hat(h)   level + phi^h (recent - level) gain: AR(1) with added white noise
"""

from __future__ import annotations

import numpy as np

from include.utc import HOUR_S
from models.arrays import Floats, Ints
from models.forecasting.calendar import Calendar

DAYS = 4.0
"""Days at the end of a history that the remainder is fitted on."""
LEVEL_SHARE = 0.6
"""Share of the remainder's mean over the last day that is kept as a change of level."""
RECENT_S = 900.0
"""Length of the end of the history whose remainder the AR(1) starts from."""
MOST_PHI_PER_H = 0.995


def forecast_remainder(
    rest: Floats, calendar: Calendar, horizon: int, *, level_share: float = LEVEL_SHARE, recent_s: float = RECENT_S
) -> Floats:
    """Return the forecast of the remainder, shape (n, horizon), from r of shape (n, L)."""
    level = level_share * _mean(rest[:, -calendar.day :])
    phi, gain = _fit_decay(np.nan_to_num(rest - level[:, None]), calendar.bins(HOUR_S))
    observed = np.isfinite(rest)
    since = np.where(observed.any(axis=1), np.argmax(observed[:, ::-1], axis=1), rest.shape[1])  # bins without a value
    recent = _mean_before(rest, rest.shape[1] - since, calendar.bins(recent_s)) - level
    lead = np.arange(1, horizon + 1) + since[:, None]
    return np.asarray(level[:, None] + (gain * recent)[:, None] * phi[:, None] ** lead)


def _mean(values: Floats) -> Floats:
    """Return row means over finite values, 0 for rows without any."""
    counted = np.isfinite(values).sum(axis=1)
    return np.asarray(np.nansum(values, axis=1) / np.maximum(counted, 1))


def _mean_before(values: Floats, stop: Ints, window: int) -> Floats:
    """Return the mean of the ``window`` values before column ``stop`` of each row, shape (n,)."""
    columns = np.clip(stop[:, None] - 1 - np.arange(window), 0, values.shape[1] - 1)
    return _mean(np.take_along_axis(values, columns, axis=1))


def _fit_decay(centred: Floats, lag: int) -> tuple[Floats, Floats]:
    """Return phi per bin and gain of an AR(1) with added white noise, each of shape (n,).

    With autocovariance c(k) = g c(0) phi^k for k > 0, phi^lag = c(2 lag) / c(lag) is free of the noise, and
    g = c(lag) / (c(0) phi^lag) is the share of the variance that is not noise.
    """

    def autocovariance(k: int) -> Floats:
        if k >= centred.shape[1]:
            return np.zeros(len(centred))
        return np.asarray(np.einsum("nt,nt->n", centred[:, k:], centred[:, : centred.shape[1] - k]))

    c0, c1, c2 = autocovariance(0), autocovariance(lag), autocovariance(2 * lag)
    known = (c0 > 0) & (c1 > 0)
    ratio = np.clip(np.where(known, c2 / np.where(known, c1, 1.0), 0.0), 0.0, MOST_PHI_PER_H)
    share = np.where(known, c1 / np.where(known, c0, 1.0), 0.0)
    gain = np.clip(np.where(ratio > 0, share / np.where(ratio > 0, ratio, 1.0), share), 0.0, 1.0)
    return ratio ** (1.0 / lag), gain
