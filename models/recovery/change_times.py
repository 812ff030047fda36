"""How long a change takes, as distributions: what the requests of a job and its cluster took, beside what is assumed.

No shape is fitted to what was measured, since warm and cold nodes are two modes. What is assumed is lognormal.

    F(t) = (own(t) + w others(t) + PRIOR_EVENTS prior(t)) / (n + w m + PRIOR_EVENTS),  w m <= PRIOR_EVENTS
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
        events: that it was learnt from.
    """

    median_s: float
    most_s: float
    events: int


@dataclass(frozen=True, slots=True)
class ChangeTimes:
    """How long a change of a job takes, each from the end of the one before.

    Attributes:
        slots: until slots come that the cluster does not have, as of a new TaskManager.
        checkpoint: until Flink stops the job, which runs on until then: the wait for a checkpoint, and Flink's rests.
        restore: from the stop until all tasks run.
    """

    slots: Duration
    checkpoint: Duration
    restore: Duration


def learn_change_times(
    own: Iterable[RequestTimes],
    others: Iterable[RequestTimes] = (),
    *,
    slots_wait_s: float = SLOTS_WAIT_S,
    checkpoint_wait_s: float = 300.0,
    restore_s: float = 150.0,
) -> ChangeTimes:
    """Learn how long a job's changes take, by its requests and those of other jobs: slots come for all alike.

    Waits and restore are assumed 95% quantiles; all that is assumed counts like ``PRIOR_EVENTS`` requests.
    """
    mine, theirs = list(own), list(others)
    return ChangeTimes(
        slots=_learn([one.slots_s for one in (*mine, *theirs)], [], slots_wait_s),
        checkpoint=_learn([one.waited_s for one in mine], [one.waited_s for one in theirs], checkpoint_wait_s),
        restore=_learn([one.restored_s for one in mine], [one.restored_s for one in theirs], restore_s),
    )


def _learn(own: Iterable[float | None], others: Iterable[float | None], prior_s: float) -> Duration:
    mine, theirs = ([one for one in values if one is not None] for values in (own, others))
    weights = [
        np.ones(len(mine)),
        np.full(len(theirs), min(1.0, PRIOR_EVENTS / max(len(theirs), 1))),
        np.full(_POINTS, PRIOR_EVENTS / _POINTS),
    ]
    median_s, most_s = np.quantile(
        np.concatenate([mine, theirs, prior_s * _PRIOR]),
        (0.5, _MOST),
        weights=np.concatenate(weights),
        method="inverted_cdf",
    )
    return Duration(float(median_s), float(most_s), len(mine))
