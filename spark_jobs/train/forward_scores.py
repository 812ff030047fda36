"""Errors forward in time: a trial is trained on what came before a moment and predicts the hours after it.

The trial is made as the challenger is, of less data.  Its errors stand for the challenger's, which has seen those hours
itself; the champion has not seen them either, because the moment is never before its own training.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pandas as pd

from models.bundle.fleet_bundle import FleetBundle
from models.capacity.conformal import LEVELS
from models.training.calibration import Residuals
from spark_jobs.train.day_windows import JOB
from spark_jobs.train.holdout_scores import bundle_rows, score_capacities
from spark_jobs.train.recovery_scores import is_inside, recovery_errors

RECOVERY_COLUMNS = (*JOB, "cause_kind", "error", "champion_error", "inside", "champion_inside")
_ERROR_COLUMNS = (*JOB, "hour", "idle", "place", "error", "champion_error", "linear_error")


@dataclass(frozen=True, slots=True)
class ForwardScores:
    """Errors of the trial and of the champion on the same hours.

    Attributes:
        since: first moment that is predicted; None when the history is too short.
        capacity: one row per operator, parallelism and hour: as of holdout_scores.score_capacities, ``hour`` and
            ``place`` (``seen``: the parallelism was observed before; ``unseen``: by neither model).
        recovery: one row per event: RECOVERY_COLUMNS; ``inside``: of the 80% interval.
        residuals: of the trial.
    """

    since: datetime | None
    capacity: pd.DataFrame
    recovery: pd.DataFrame
    residuals: Residuals = field(default_factory=lambda: Residuals.join(()))

    @classmethod
    def none(cls) -> ForwardScores:
        """Return the scores of a history that is too short."""
        return cls(None, pd.DataFrame(columns=list(_ERROR_COLUMNS)), pd.DataFrame(columns=list(RECOVERY_COLUMNS)))


def events_before(events: pd.DataFrame, moment: datetime) -> pd.DataFrame:
    """Return the events that were over at an earlier moment."""
    running = pd.to_datetime(events["started_at"], utc=True) + pd.to_timedelta(events["downtime_s"], unit="s")
    return events[running < moment]


def capacity_errors(rows: pd.DataFrame, trial: FleetBundle, champion: FleetBundle | None) -> pd.DataFrame:
    """Return errors of rows of judged_rows.hour_rows, with columns of :class:`ForwardScores`."""
    was_recorded = was_observed(trial, rows)
    champion_saw = was_observed(champion, rows) if champion else was_recorded
    place = np.where(
        was_recorded & champion_saw, "seen", np.where(~was_recorded & ~champion_saw, "unseen", "one saw it")
    )
    return score_capacities(rows, trial, champion).assign(hour=rows["hour"], place=place)


def was_observed(bundle: FleetBundle, rows: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return (n,) whether the model had observed the operator at the parallelism of each row."""
    row, parallelism = bundle_rows(bundle, rows), rows["parallelism"].to_numpy(np.int64)
    arrays = bundle.arrays
    wide = int(max(arrays["observed"].max(initial=0), parallelism.max(initial=0))) + 1
    owner = np.repeat(np.arange(len(arrays["observed_count"])), arrays["observed_count"])
    return np.asarray(np.isin(row * wide + parallelism, owner * wide + arrays["observed"]) & (row >= 0))


def score_recoveries_forward(ours: pd.DataFrame, theirs: pd.DataFrame | None) -> pd.DataFrame:
    """Return RECOVERY_COLUMNS of events that trial and champion were both trained before.

    Both frames are of recovery_scores.predict_recoveries; each model predicts with its own downtimes.
    """
    mine = ours.assign(error=recovery_errors(ours), inside=is_inside(ours, LEVELS[0]))
    if theirs is None or mine.empty:
        return mine.assign(champion_error=np.nan, champion_inside=np.nan)[list(RECOVERY_COLUMNS)]
    keys = ["cluster", "job", "kind", "started_at"]
    other = theirs.assign(champion_error=recovery_errors(theirs), champion_inside=is_inside(theirs, LEVELS[0]))
    both = mine.merge(other[[*keys, "champion_error", "champion_inside"]], on=keys)
    return both[list(RECOVERY_COLUMNS)]
