"""Downtimes of jobs at a rescale or restart, learnt from their events and, where there are few, from the fleet.

Downtimes are positive with a long tail, so medians of logarithms are used: one outlier among many events moves nothing.
A job's median is shrunk towards its cluster's, that towards the fleet's, that towards a prior, each as if the coarser
level were worth PRIOR_EVENTS events.

Deviation: Phoebe has a constant downtime in its code; here it is learnt, and a planned rescale has one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.arrays import Floats, Ints
from models.bundle.job_models import CauseKind, EventKind, RecoveryModel

# What is known before any event: DS2 reports 30-50 s for a redeployment, Phoebe 90-130 s for a failure.
DOWNTIME_PRIOR_S: Final[dict[EventKind, float]] = {"rescale": 40.0, "restart": 90.0}
# A TaskManager's loss is noticed late; an upgrade is a savepoint, a stop and a submission.
CAUSE_PRIOR_S: Final[dict[CauseKind, float]] = {
    "rescale": 40.0,
    "upgrade": 60.0,
    "taskmanager_lost": 90.0,
    "job_failure": 60.0,
}
DOWNTIME_PRIOR_LOG_SD = 0.5
CHECKPOINT_AGE_PRIOR_S = 30.0
PRIOR_EVENTS = 2.0  # with a prior of 30 s, rescales of 60 s are expected to take 49 s after one, 57 s after three
_SHORTEST_S = 0.1
_MAD_TO_SD = 1.4826


@dataclass(frozen=True, slots=True)
class TypicalDuration:
    """A typical duration per job.

    Attributes:
        centre_s: (J,) expected duration.
        sd_s: (J,) standard deviation of a single event around it.
    """

    centre_s: Floats
    sd_s: Floats


def typical_duration(duration_s: Floats, job: Ints, cluster_of_job: Ints, prior_s: float) -> TypicalDuration:
    """Estimate a duration per job with shrinkage job -> cluster -> fleet -> prior.

    Of n events, n may be 0, with durations that are not negative, of jobs 0..J-1; clusters, (J,), are 0..C-1.
    """
    x = np.log(np.maximum(duration_s, _SHORTEST_S))
    jobs, clusters = len(cluster_of_job), int(cluster_of_job.max(initial=-1)) + 1
    prior = float(np.log(prior_s))
    levels = [(np.zeros(len(x), np.int64), 1), (cluster_of_job[job], clusters), (job, jobs)]
    parents = [np.zeros(1, np.int64), np.zeros(clusters, np.int64), cluster_of_job]
    centre = np.full(1, prior)
    for (group, groups), parent in zip(levels, parents, strict=True):
        median, count = _medians(x, group, groups)
        centre = (count * median + PRIOR_EVENTS * centre[parent]) / (count + PRIOR_EVENTS)
    observed = np.bincount(job, minlength=jobs)
    sd = _deviation(x - centre[job]) * np.sqrt(1.0 + 1.0 / (observed + PRIOR_EVENTS))
    return TypicalDuration(np.exp(centre), np.exp(centre) * sd)


def _deviation(residual: Floats) -> float:
    """Return a robust standard deviation of log durations, shrunk to the prior."""
    mad = _MAD_TO_SD * float(np.median(np.abs(residual))) if len(residual) else 0.0
    weight = len(residual) + PRIOR_EVENTS
    return float(np.sqrt((len(residual) * mad**2 + PRIOR_EVENTS * DOWNTIME_PRIOR_LOG_SD**2) / weight))


def _medians(x: Floats, group: Ints, groups: int) -> tuple[Floats, Ints]:
    """Return each group's median and size, (G,); the median of nothing is 0: it enters with weight 0."""
    count = np.bincount(group, minlength=groups)
    values = np.append(x[np.lexsort((x, group))], 0.0)
    begin = np.cumsum(count) - count
    low, high = begin + np.maximum(count - 1, 0) // 2, begin + count // 2
    return np.where(count > 0, 0.5 * (values[low] + values[np.minimum(high, len(x))]), 0.0), count


def typical_of_job(durations_s: Sequence[float], prior_s: float) -> tuple[float, float]:
    """Return expected duration and standard deviation of a single event, s, of one job that has no fleet.

    >>> [round(value, 1) for value in typical_of_job([], 30.0)]
    [30.0, 18.4]
    >>> [round(value, 1) for value in typical_of_job([40.0, 50.0, 60.0], 30.0)]
    [48.4, 20.4]
    """
    values = np.array(durations_s, float)
    result = typical_duration(values, np.zeros(len(values), np.int64), np.zeros(1, np.int64), prior_s)
    return float(result.centre_s[0]), float(result.sd_s[0])


UNTRAINED: Final = RecoveryModel(
    *typical_of_job([], DOWNTIME_PRIOR_S["rescale"]),
    *typical_of_job([], DOWNTIME_PRIOR_S["restart"]),
    checkpoint_interval_s=typical_of_job([], CHECKPOINT_AGE_PRIOR_S)[0],
    events=0,
)
"""Of a job before any event of it or of the fleet."""
