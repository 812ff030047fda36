"""The recovery models of all jobs from the fleet's events; there is no loop over jobs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from models.arrays import Floats
from models.bundle import FleetBundle
from models.downtime import find_change_s, fit_downtimes
from models.job_models import CauseKind
from models.recovery import CAUSE_PRIOR_S, CHECKPOINT_AGE_PRIOR_S, DOWNTIME_PRIOR_S, typical_duration
from models.recovery_intervals import find_factors
from spark_jobs.train.training_data import JOB


def build_recovery(jobs: pd.DataFrame, events: pd.DataFrame) -> tuple[Floats, pd.DataFrame]:
    """Return the (J, fields of RecoveryModel) array, and the events of known jobs with what was expected of each.

    Args:
        jobs: JOB columns, sorted.
        events: rows of Inputs.events.
    """
    numbered = jobs.assign(number=np.arange(len(jobs)))
    known = events.merge(numbered, how="inner", on=list(JOB)).sort_values(["started_at", *JOB], ignore_index=True)
    cluster = jobs["cluster"].astype("category").cat.codes.to_numpy().astype(np.int64)
    number = known["number"].to_numpy(np.int64)
    seconds = known["downtime_s"].to_numpy(float)
    is_upgrade = (known["cause_kind"] == "upgrade").to_numpy()
    columns: list[Floats] = []
    for kind, prior_s in DOWNTIME_PRIOR_S.items():
        mine = (known["kind"] == kind).to_numpy() & ~is_upgrade
        typical = typical_duration(seconds[mine], number[mine], cluster, prior_s)
        columns += [typical.centre_s, typical.sd_s]
    age = known["checkpoint_age_s"].to_numpy(float)
    aged = np.isfinite(age)
    columns.append(typical_duration(age[aged], number[aged], cluster, CHECKPOINT_AGE_PRIOR_S).centre_s)
    columns.append(np.bincount(number, minlength=len(jobs)).astype(float))
    apart: tuple[CauseKind, ...] = ("upgrade", "taskmanager_lost", "job_failure")
    for cause in apart:
        mine = (known["cause_kind"] == cause).to_numpy()
        prior_s = CAUSE_PRIOR_S[cause]
        columns.append(typical_duration(seconds[mine], number[mine], cluster, prior_s).centre_s)
    state = known["state_size_bytes"].to_numpy(float)
    before, observed_before = np.full(len(known), np.nan), np.full(len(known), np.nan)
    slopes = {}
    for cause, prior_s in CAUSE_PRIOR_S.items():
        mine = (known["cause_kind"] == cause).to_numpy()
        change_s = None
        if cause != "rescale":  # few of a job; its rescales tell more than other jobs do
            both = mine | (known["cause_kind"] == "rescale").to_numpy()
            two = (seconds[both], state[both], number[both], len(jobs))
            change_s = find_change_s(*two, CAUSE_PRIOR_S["rescale"], is_other=mine[both])
        result = fit_downtimes(seconds[mine], state[mine], number[mine], len(jobs), prior_s, change_s=change_s)
        before[mine], observed_before[mine], slopes[cause] = result.before_s, result.seen_before, result.slope
    usual = fit_downtimes(seconds, state, number, len(jobs), DOWNTIME_PRIOR_S["rescale"]).state_bytes
    columns += [slopes["rescale"], slopes["taskmanager_lost"], np.nan_to_num(usual)]
    factors = np.broadcast_to(find_factors(np.zeros(0)), (len(jobs), 2))
    recovery = np.column_stack([*columns, factors])
    expected = {"downtime_before_s": before, "downtimes_before": observed_before}
    return recovery, known.assign(**expected).drop(columns="number")


def with_intervals(bundle: FleetBundle, errors: Floats) -> FleetBundle:
    """Return a bundle whose intervals of recovery times come from the standardised errors (n,) of its events."""
    recovery = bundle.arrays["recovery"].copy()
    recovery[:, -2:] = find_factors(errors)
    return replace(bundle, arrays={**bundle.arrays, "recovery": recovery})
