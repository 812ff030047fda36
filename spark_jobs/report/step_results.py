"""What was promised of the steps of the last days, beside what came of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.report.control_log import STEP, own_steps, step_outcomes

BIN = timedelta(minutes=5)
# A rescale belongs to a step when it began so shortly before or after the step was decided on.
NEAR = timedelta(minutes=10)
PLAN_REACHES = timedelta(days=7)
_TIMES = ("slots", "slots_from", "apply_at", "effective_at", "valid_until")
_EXPECTED = ("p_late", "expected_late_minutes", "expected_load_q90_per_s", "expected_recovery_s")
PLANNED = ("as_of", "date", "status", *_TIMES, *_EXPECTED)
"""Of gold.plans, what is read beside the step."""
STOPPED = ("started_at", "kind", "downtime_s", "catch_up_s")
"""Of silver.rescales, what is read beside the job."""
_REALISED = ["confirmed", "dry_run"]  # of a dry run too is kept what the job did meanwhile


def due_steps(plans: DataFrame, log: DataFrame, since: datetime, as_of: datetime) -> DataFrame:
    """Return the steps of a span of time that the controller decided on, of plans and its own, with their outcomes."""
    results = step_outcomes(log, since.date(), as_of.date())
    # A plan reaches a day or two ahead; the partition column keeps older ones closed.
    dates = F.col("date").between(F.lit((since - PLAN_REACHES).date()), F.lit(as_of.date()))
    due = F.col("apply_at").between(F.lit(since), F.lit(as_of)) & (F.col("as_of") < F.lit(as_of))
    origin = F.lit("plan").alias("origin")
    planned = plans.where(dates & due).select("as_of", *STEP, *_TIMES, *_EXPECTED, origin)
    # Its own steps have no forecast; they are in effect until the next step.
    unknown = {name: F.lit(None).cast("double") for name in _EXPECTED}
    times = {name: F.col("at") for name in ("as_of", "apply_at", "effective_at")}
    own = own_steps(log, since, as_of).withColumns({**unknown, **times, "valid_until": F.lit(None).cast("timestamp")})
    return planned.join(results, [*STEP]).unionByName(own.drop("at").join(results, [*STEP]))


def recent_rescales(rescales: DataFrame, since: datetime, as_of: datetime) -> DataFrame:
    """Return the rescales and restarts of a span of time."""
    inside = F.col("started_at").between(F.lit(since), F.lit(as_of))
    return rescales.where(inside).select("cluster", "job", *STOPPED)


def list_results(
    steps: pd.DataFrame, load: pd.DataFrame, rescales: pd.DataFrame, as_of: datetime
) -> list[dict[str, Any]]:
    """Return the rows of ``gold.step_results`` of a job, in the order of time.

    A step is in effect until the next one that is, or until it ends. Bins are of five minutes: ``bin``, ``rate_per_s``,
    ``slots``, ``late_share`` (null where it is not known); times without a zone are UTC throughout, and nothing is
    known after ``as_of``.
    """
    ordered = steps.sort_values(["apply_at", "as_of"], ignore_index=True)
    now = pd.Timestamp(as_of).tz_convert("UTC").tz_localize(None)
    result = []
    for place, row in enumerate(ordered.to_dict("records")):
        later = ordered.loc[place + 1 :]
        following = later.loc[later["final_status"].isin(_REALISED), "effective_at"]
        ends = [timestamp for timestamp in (row["valid_until"], following.min(), now) if not pd.isna(timestamp)]
        result.append(_result_of(row, min(ends), load, rescales))
    return result


def _result_of(row: dict[Any, Any], end: Any, load: pd.DataFrame, rescales: pd.DataFrame) -> dict[str, Any]:
    begin = row["effective_at"]
    during = load[(load["bin"] >= begin) & (load["bin"] < end)] if row["final_status"] in _REALISED else load.iloc[:0]
    distance = (rescales["started_at"] - row["decided_at"]).abs()
    own = rescales[(distance <= NEAR) & (rescales["kind"] == "rescale")] if row["final_status"] == "confirmed" else None
    took = None if own is None or own.empty else own.loc[distance[own.index].idxmin()]
    late = during["late_share"].dropna().astype(float)
    return {
        **{name: row[name] for name in ("cluster", "job", "step_id", "origin")},
        "apply_at": _utc(row["apply_at"]),
        "effective_at": _utc(begin),
        "ended_at": _utc(max(end, begin)),
        "status": row["final_status"],
        "outcome": row["outcome"],
        "slots_from": _whole(row["slots_from"]),
        "slots_to": _whole(row["slots"]),
        "slots_ran": optional_number(during["slots"].mean()),
        "load_q90_per_s": optional_number(row["expected_load_q90_per_s"]),
        "load_max_per_s": optional_number(during["rate_per_s"].max()),
        "p_late": optional_number(row["p_late"]),
        "late_minutes_promised": optional_number(row["expected_late_minutes"]),
        "late_minutes": float(late.sum()) * BIN.total_seconds() / 60.0 if len(late) else None,
        "recovery_s": optional_number(row["expected_recovery_s"]),
        "took_s": None if took is None else optional_number(took["downtime_s"] + took["catch_up_s"]),
        "date": _utc(row["apply_at"]).date(),
    }


def optional_number(value: Any) -> float | None:
    """Return a number, None for a null."""
    return None if pd.isna(value) else float(value)


def _whole(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)


def _utc(value: Any) -> datetime:
    result: datetime = pd.Timestamp(value).tz_localize("UTC").to_pydatetime()
    return result
