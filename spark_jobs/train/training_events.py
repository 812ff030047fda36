"""Training data of recovery models: the recent events, and the times after them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from include.settings import Training
from models.arrays import Floats, Ints
from models.bundle.fleet_bundle import JobKey
from models.training.recovery_fits import RECENT_EVENTS, RecoveryEvents

JOB = ("cluster", "job")
MEASURED_FOR_S = 3600  # after an event its capacity is measured over so long, or until the next one
NUMBERS = (
    "downtime_s",
    "catch_up_s",
    "unseen_s",
    "emitted_records",
    "pending_records",
    "pending_before_records",
    "load_per_s",
    "load_after_per_s",
)
COLUMNS = (
    *("kind", "cause_kind", "started_at", "running_at", "next_started_at", "parallelism_after"),
    *NUMBERS,
    *("source_load_per_s", "checkpoint_age_s", "state_size_bytes"),
)


def recent_events(rescales: pa.Table, as_of: datetime, training: Training) -> pa.Table:
    """Return the newest rescales and restarts of each job and kind that were over before ``as_of``, with COLUMNS."""
    since = as_of - timedelta(days=training.lookback_days)
    dated = rescales.sort_by([(name, "ascending") for name in (*JOB, "started_at")])
    rows = dated.select([*JOB, "kind", "started_at", "running_at", "downtime_s"]).to_pandas()
    rows["next_started_at"] = rows.groupby(list(JOB))["started_at"].shift(-1)
    over = rows[(rows["started_at"] >= since) & (rows["running_at"] < as_of) & rows["downtime_s"].notna()]
    recent = over.groupby([*JOB, "kind"]).tail(RECENT_EVENTS)
    following = pa.array(recent["next_started_at"], rescales["started_at"].type)
    known = dated.take(pa.array(recent.index)).append_column("next_started_at", following)
    # Of a table that was written before the kinds were told apart.
    by_kind = pc.if_else(pc.equal(known["kind"], "rescale"), "rescale", "job_failure")
    cause = pc.coalesce(known["cause_kind"], by_kind)
    return known.set_column(known.schema.get_field_index("cause_kind"), "cause_kind", cause).select([*JOB, *COLUMNS])


def list_spans(events: pd.DataFrame) -> dict[JobKey, Floats]:
    """Return the (n, 2) times after each job's events over which its capacity is measured, epoch seconds.

    They begin when the job runs again and last for MEASURED_FOR_S, or until the next event.
    """
    running_s, next_s = (_epoch_s(events[name]) for name in ("running_at", "next_started_at"))
    spans = np.stack([running_s, np.fmin(next_s, running_s + MEASURED_FOR_S)], axis=1)
    return {job: spans[rows] for job, rows in index_jobs(events).items()}


def index_jobs(events: pd.DataFrame) -> dict[JobKey, Ints]:
    """Return the places of each job's rows, in their order."""
    return cast("dict[JobKey, Ints]", events.groupby(list(JOB)).indices)


def find_places(rows: pd.DataFrame, names: Sequence[tuple[str, ...]], columns: Sequence[str] = JOB) -> Ints:
    """Return the place of each row's names among others, -1 of names that are not there: shape (rows,)."""
    if rows.empty or not names:
        return np.full(len(rows), -1, np.int64)
    index = pd.MultiIndex.from_tuples(names)
    return np.asarray(index.get_indexer(pd.MultiIndex.from_frame(rows[list(columns)])), np.int64)


def list_events(events: pd.DataFrame, jobs: Sequence[JobKey]) -> tuple[pd.DataFrame, RecoveryEvents]:
    """Return the events of known jobs in order of time, as rows and as arrays."""
    place = find_places(events, jobs)
    known = events.assign(place=place)[place >= 0].sort_values(["started_at", *JOB], ignore_index=True)
    places = known.pop("place").to_numpy(np.int64)
    numbers = {name: known[name].to_numpy(float) for name in ("downtime_s", "checkpoint_age_s", "state_size_bytes")}
    return known, RecoveryEvents(
        places,
        known["kind"].to_numpy(str),
        known["cause_kind"].to_numpy(str),
        numbers["downtime_s"],
        numbers["checkpoint_age_s"],
        numbers["state_size_bytes"],
    )


def _epoch_s(times: pd.Series) -> Floats:
    utc = pd.to_datetime(times, utc=True)
    return np.asarray((utc - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1), float)
