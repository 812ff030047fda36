"""How long slots that are missing take to come, as a distribution: what a cluster's requests took, and what is assumed.

No shape is fitted to what was measured, since warm and cold nodes are two modes. What is assumed is lognormal.

    F(t) = (measured(t) + PRIOR_EVENTS prior(t)) / (n + PRIOR_EVENTS)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from models.control.request_times import RequestTimes
from models.recovery.downtime import PRIOR_EVENTS

SLOTS_WAIT_S = 600.0
"""Assumed 95% quantile of the wait for slots."""
_MOST = 0.95
_LOG_NORMAL = NormalDist(0.0, 0.8)
_POINTS = 64
# (_POINTS,) of a lognormal distribution whose 95% quantile is 1
_PRIOR = np.exp([_LOG_NORMAL.inv_cdf((one + 0.5) / _POINTS) for one in range(_POINTS)])
_PRIOR /= np.quantile(_PRIOR, _MOST, method="inverted_cdf")


@dataclass(frozen=True, slots=True)
class Duration:
    """A distribution of a duration.

    Attributes:
        median_s: its median.
        most_s: its 95% quantile.
    """

    median_s: float
    most_s: float


def learn_slots_wait(requests: Iterable[RequestTimes], assumed_s: float) -> Duration:
    """Return how long slots take to come that a cluster does not have, as those of a new TaskManager.

    The 95% quantile that is assumed, s, counts like ``PRIOR_EVENTS`` requests.
    """
    known = [one.slots_s for one in requests if one.slots_s is not None]
    weights = np.concatenate([np.ones(len(known)), np.full(_POINTS, PRIOR_EVENTS / _POINTS)])
    values = np.concatenate([known, assumed_s * _PRIOR])
    median_s, most_s = np.quantile(values, (0.5, _MOST), weights=weights, method="inverted_cdf")
    return Duration(float(median_s), float(most_s))
