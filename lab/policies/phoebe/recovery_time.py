"""Recovery time from a forecast, Section III-B of Phoebe: downtime, then rounds of catching up.

Round 0 works off what arrived since the last checkpoint and during the downtime; each further round what arrived
during the round before it: c(0) = 1/T_max * integral of f over [t0 - I, t0 + D], c(n) = 1/T_max * integral of f over
the round before.  R = D + sum of c(n), up to and with the first round shorter than a second.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

_LAST_ROUND_S = 1.0


def recovery_s(
    load_per_s: npt.ArrayLike, now: int, *, capacity_per_s: float, downtime_s: float, since_checkpoint_s: float
) -> float:
    """Return R of a failure now.

    As in the prototype the rounds end with the forecast: a load that the capacity does not keep up with gives a finite
    value that grows with the forecast's horizon.

    Deviation: the prototype rounds every interval up to whole seconds.  From half of the capacity on such rounds may
    never get shorter than a second (at 0.75 a round of 3 s follows itself); here they last as long as they do.

    Args:
        load_per_s: (T,) history followed by forecast, one value per second, records/s.
        now: the index of the present in it.
        capacity_per_s: T_max; R is infinite when it is not positive.
        downtime_s: D.
        since_checkpoint_s: I, age of the last checkpoint.

    Returns:
        seconds; NaN when the load is not known where it is needed.
    """
    load = np.asarray(load_per_s, float)
    if not capacity_per_s > 0:
        return math.inf
    arrived = np.concatenate([[0.0], np.cumsum((load[1:] + load[:-1]) / 2.0)])  # (T,) records since the first second
    seconds = np.arange(len(load), dtype=float)
    first, last = max(0.0, now - since_checkpoint_s), now + downtime_s
    total = downtime_s
    while first < len(load) - 1:
        began, ended = np.interp([first, last], seconds, arrived)
        round_s = float(ended - began) / capacity_per_s
        total += round_s
        if not round_s >= _LAST_ROUND_S:
            break
        first, last = last, last + round_s
    return total


def projected_load(forecast_per_s: npt.ArrayLike, bins: int = 5) -> float:
    """Return the highest mean load over equal bins of a forecast: the throughput that a scale-out is chosen for.

    Args:
        forecast_per_s: (T,) records/s; NaN where unknown.
        bins: at most; the prototype's controller asks for 5.
    """
    forecast = np.asarray(forecast_per_s, float)
    known = [part[np.isfinite(part)].mean() for part in np.array_split(forecast, bins) if np.isfinite(part).any()]
    return float(max(known, default=math.nan))
