"""The recovery models of all jobs from the fleet's events; there is no loop over jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.arrays import Floats, Ints, Texts
from models.bundle.job_models import CauseKind
from models.recovery.downtime import find_change_s, fit_downtimes
from models.recovery.intervals import find_factors
from models.recovery.recovery_model import CAUSE_PRIOR_S, CHECKPOINT_AGE_PRIOR_S, DOWNTIME_PRIOR_S, typical_duration

RECENT_EVENTS: Final = 40
"""Per job and kind; older ones are not typical of the present job."""


@dataclass(frozen=True, slots=True)
class RecoveryEvents:
    """Rescales and restarts in order of time, (n,) each; NaN where something is not known.

    Attributes:
        job: place of the event's job.
        kind: ``rescale`` or ``restart``; cause_kind: see models.bundle.job_models.CauseKind.
        downtime_s, checkpoint_age_s: not negative.
        state_bytes: size of the state.
    """

    job: Ints
    kind: Texts
    cause_kind: Texts
    downtime_s: Floats
    checkpoint_age_s: Floats
    state_bytes: Floats

    @classmethod
    def none(cls) -> RecoveryEvents:
        """Return no events."""
        numbers, texts = np.zeros(0), np.zeros(0, str)
        return cls(np.zeros(0, np.int64), texts, texts, numbers, numbers, numbers)


@dataclass(frozen=True, slots=True)
class RecoveryFits:
    """Recovery models of J jobs, and what was to be expected of n events.

    Attributes:
        recovery: (J, fields of RecoveryModel); factors of intervals are those of a normal distribution.
        downtime_before_s: (n,) downtime that was to be expected before each event.
        downtimes_before: (n,) from how many of the job.
    """

    recovery: Floats
    downtime_before_s: Floats
    downtimes_before: Floats


def fit_recoveries(events: RecoveryEvents, cluster_of_job: Ints) -> RecoveryFits:
    """Fit all jobs; ``cluster_of_job``: (J,) 0..C-1."""
    jobs, number, seconds = len(cluster_of_job), events.job, events.downtime_s
    is_upgrade = events.cause_kind == "upgrade"
    columns: list[Floats] = []
    for kind, prior_s in DOWNTIME_PRIOR_S.items():
        mine = (events.kind == kind) & ~is_upgrade
        typical = typical_duration(seconds[mine], number[mine], cluster_of_job, prior_s)
        columns += [typical.centre_s, typical.sd_s]
    age = events.checkpoint_age_s
    aged = np.isfinite(age)
    columns.append(typical_duration(age[aged], number[aged], cluster_of_job, CHECKPOINT_AGE_PRIOR_S).centre_s)
    columns.append(np.bincount(number, minlength=jobs).astype(float))
    apart: tuple[CauseKind, ...] = ("upgrade", "taskmanager_lost", "job_failure")
    for cause in apart:
        mine = events.cause_kind == cause
        columns.append(typical_duration(seconds[mine], number[mine], cluster_of_job, CAUSE_PRIOR_S[cause]).centre_s)
    state, before, observed_before = events.state_bytes, np.full(len(number), np.nan), np.full(len(number), np.nan)
    slopes = {}
    for cause, prior_s in CAUSE_PRIOR_S.items():
        mine = events.cause_kind == cause
        change_s = None
        if cause != "rescale":  # few of a job; its rescales tell more than other jobs do
            both = mine | (events.cause_kind == "rescale")
            two = (seconds[both], state[both], number[both], jobs)
            change_s = find_change_s(*two, CAUSE_PRIOR_S["rescale"], is_other=mine[both])
        result = fit_downtimes(seconds[mine], state[mine], number[mine], jobs, prior_s, change_s=change_s)
        before[mine], observed_before[mine], slopes[cause] = result.before_s, result.seen_before, result.slope
    usual = fit_downtimes(seconds, state, number, jobs, DOWNTIME_PRIOR_S["rescale"]).state_bytes
    columns += [slopes["rescale"], slopes["taskmanager_lost"], np.nan_to_num(usual)]
    factors = np.broadcast_to(find_factors(np.zeros(0)), (jobs, 2))
    return RecoveryFits(np.column_stack([*columns, factors]), before, observed_before)


def set_factors(recovery: Floats, errors: Floats) -> Floats:
    """Return recovery models whose intervals come from the standardised errors (n,) of the fleet's events."""
    result = recovery.copy()
    result[:, -2:] = find_factors(errors)
    return result
