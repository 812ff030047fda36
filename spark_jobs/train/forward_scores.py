"""Errors forward in time: a trial is trained on what came before a moment and predicts the hours after it.

The trial is made as the challenger is, of less data.  Its errors stand for the challenger's, which has seen those hours
itself; the champion has not seen them either, because the moment is never before its own training.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.settings import Training
from models.arrays import Floats
from models.bundle import FleetBundle
from models.conformal import LEVELS
from spark_jobs.timestamps import timestamp_column
from spark_jobs.train.holdout_scores import (
    bundle_rows,
    capacity_at,
    linear_capacity_at,
)
from spark_jobs.train.recovery_scores import is_inside, recovery_errors
from spark_jobs.train.training_data import POINT, Inputs, scored_windows

HISTORY_SHARE = 0.25
"""Of a short history the last part of this share is predicted."""
LEAST = timedelta(minutes=10)
"""With less time than this after the moment nothing is judged."""
RECOVERY_COLUMNS = ("cause_kind", "error", "champion_error", "inside", "champion_inside")
_ERROR_COLUMNS = "hour TIMESTAMP, idle BOOLEAN, place STRING, error DOUBLE, champion_error DOUBLE, linear_error DOUBLE"


@dataclass(frozen=True, slots=True)
class ForwardScores:
    """Errors of the trial and of the champion on the same hours.

    Attributes:
        since: first moment that is predicted; None when the history is too short.
        capacity: one row per operator, parallelism and hour: ``hour``, ``idle``, ``place`` (``seen``: the parallelism
            was observed before; ``unseen``: by neither model), relative errors of trial, champion and linear model.
        recovery: one row per event: RECOVERY_COLUMNS; ``inside``: of the 80% interval.
        residuals: rows of interval_scores.forward_residuals, of the trial.
    """

    since: datetime | None
    capacity: pd.DataFrame
    recovery: pd.DataFrame
    residuals: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["window_start", "place", "residual"]))

    @classmethod
    def none(cls) -> ForwardScores:
        """Return the scores of a history that is too short."""
        columns = [column.split()[0] for column in _ERROR_COLUMNS.split(", ")]
        return cls(None, pd.DataFrame(columns=columns), pd.DataFrame(columns=list(RECOVERY_COLUMNS)))


def forward_since(
    first: datetime, as_of: datetime, champion_trained: datetime | None, training: Training
) -> datetime | None:
    """Return the moment from which on windows are predicted; None when too little time would be left.

    Args:
        first: of the history.
        as_of: its end.
        champion_trained: as of when the champion was; None without one, or when that is not known.
        training: the settings.
    """
    span = min(timedelta(hours=training.gate_forward_h), HISTORY_SHARE * (as_of - first))
    since = max(as_of - span, champion_trained or as_of - span)
    return since if as_of - since >= LEAST else None


def inputs_before(inputs: Inputs, moment: datetime) -> Inputs:
    """Return what was known at an earlier moment."""
    end = F.timestamp_seconds(F.unix_timestamp("window_start") + F.col("window_s"))
    running = F.unix_timestamp("started_at") + F.col("downtime_s")
    return replace(
        inputs,
        as_of=moment,
        observations=inputs.observations.where(end <= timestamp_column(moment)),
        events=inputs.events.where(running < F.lit(moment.timestamp())),
    )


def forward_capacities(observations: DataFrame, since: datetime, training: Training) -> DataFrame:
    """Return the mean capacity of each hour, operator and parallelism from ``since`` on, of windows that are busy."""
    later = scored_windows(observations, training).where(F.col("window_start") >= timestamp_column(since))
    return later.groupBy(*POINT, F.date_trunc("hour", "window_start").alias("hour")).agg(
        F.avg("capacity_per_s").alias("capacity_per_s"), F.max("idle").alias("idle")
    )


def score_capacities_forward(hours: DataFrame, trial: FleetBundle, champion: FleetBundle | None) -> DataFrame:
    """Return errors of rows of :func:`forward_capacities`, with columns of :class:`ForwardScores`."""
    shared = hours.sparkSession.sparkContext.broadcast((trial, champion))

    def errors(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        new, old = shared.value
        for rows in frames:
            yield capacity_errors(rows, new, old)

    return hours.mapInPandas(errors, _ERROR_COLUMNS)


def capacity_errors(rows: pd.DataFrame, trial: FleetBundle, champion: FleetBundle | None) -> pd.DataFrame:
    """Return the relative errors of one batch of rows."""
    observed_per_s = rows["capacity_per_s"].to_numpy(float)

    def error(predicted: Floats) -> Floats:
        return np.asarray(np.abs(predicted - observed_per_s) / observed_per_s)

    was_recorded = was_observed(trial, rows)
    champion_saw = was_observed(champion, rows) if champion else was_recorded
    place = np.where(
        was_recorded & champion_saw, "seen", np.where(~was_recorded & ~champion_saw, "unseen", "one saw it")
    )
    return pd.DataFrame(
        {
            "hour": rows["hour"],
            "idle": rows["idle"],
            "place": place,
            "error": error(capacity_at(trial, rows)[0]),
            "champion_error": error(capacity_at(champion, rows)[0]),
            "linear_error": error(linear_capacity_at(trial, rows)),
        }
    )


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
