"""Intervals of recovery times: relative errors of past predictions, over a scale that grows near saturation.

R = D + load (I + D) / (capacity - load) grows by (R - D) / R / (1 - u) per relative change of the load, u = load /
capacity.  So the errors of log R are divided by

    s = sqrt(DOWNTIME_SD^2 + (JOB_SD w)^2 + (LOAD_SD (1 - D / R) / (1 - u))^2)

where w is the weight of the fleet in the downtime that was expected of the job (downtime.py): PRIOR_EVENTS over
PRIOR_EVENTS and the job's own.  Their quantile over past events times s is half an interval (split conformal
prediction: Lei et al. 2018, "Distribution-free predictive inference for regression", with a scale as in their section
5.2).
"""

from __future__ import annotations

import numpy as np

from models.arrays import Floats
from models.capacity.conformal import LEVELS, conformal_rank
from models.recovery.downtime import PRIOR_EVENTS

# Those and RECENT_EVENTS chosen by ``python -m benchmarks.recovery.models`` of the seeds 3, 11, 19, 23, 29 and 31.
DOWNTIME_SD = 0.08
JOB_SD = 0.15
"""Of a job's downtimes around the fleet's."""
LOAD_SD = 0.03
"""Of load / capacity."""
_NORMAL = (1.2816, 1.96)  # half-widths of LEVELS, in standard deviations
LEAST_EVENTS = 20
"""With fewer past events the factors are those of a normal distribution."""
RECENT_EVENTS = 100
"""The factors are of so many newest events."""
_MOST_BUSY = 0.98


def error_scale(predicted_s: Floats, downtime_s: Floats, utilisation: Floats, observed_before: Floats) -> Floats:
    """Return s, (n,), of R, of D as expected from ``observed_before`` downtimes of the job, and of u, all (n,)."""
    of_fleet = PRIOR_EVENTS / (observed_before + PRIOR_EVENTS)
    with np.errstate(invalid="ignore", divide="ignore"):
        growth = (1.0 - downtime_s / predicted_s) / (1.0 - np.minimum(utilisation, _MOST_BUSY))
    of_load = LOAD_SD * np.where(np.isfinite(growth), growth, 0.0)
    return np.asarray(np.sqrt(DOWNTIME_SD**2 + (JOB_SD * of_fleet) ** 2 + of_load**2))


def standardise_errors(seen_s: Floats, predicted_s: Floats, scale: Floats) -> Floats:
    """Return |log (seen / predicted)| / s, (n,), NaN where one is not known or not positive."""
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.abs(np.log(seen_s / predicted_s)) / scale
    return np.asarray(np.where(np.isfinite(error), error, np.nan))


def find_factors(errors: Floats) -> tuple[float, float]:
    """Return the factors of LEVELS from standardised errors (n,), NaN where one is not known."""
    low, high = _factors_of(errors[None])[0].tolist()
    return low, high


def is_inside_ahead(errors: Floats) -> Floats:
    """Return (n, levels) 1 where an event in order of time lies inside the interval from those before it, 0 outside.

    NaN where an error is not known.
    """
    padded = np.concatenate([np.full(RECENT_EVENTS, np.nan), errors])
    before = np.lib.stride_tricks.sliding_window_view(padded, RECENT_EVENTS)[: len(errors)]
    return np.where(np.isfinite(errors)[:, None], errors[:, None] <= _factors_of(before), np.nan)


def _factors_of(errors: Floats) -> Floats:
    """Return (m, levels) factors from m rows of standardised errors, (m, n)."""
    ordered, count = np.sort(errors, axis=1), np.isfinite(errors).sum(axis=1)
    result = np.tile(_NORMAL, (len(errors), 1))
    enough = np.flatnonzero(count >= LEAST_EVENTS)
    for column, level in enumerate(LEVELS):
        result[enough, column] = ordered[enough, conformal_rank(count[enough], level)]
    return result
