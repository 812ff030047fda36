"""Outcomes of earlier plans, expected beside realised, from rows of a few days."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.report.control_log import STEP, own_steps, step_outcomes
from spark_jobs.report.page_data import Outcome, PolicyCost, Realised

BIN = timedelta(minutes=5)
# A rescale belongs to a step when it began so shortly before or after the step was decided on.
NEAR = timedelta(minutes=10)
OUTCOMES_SHOWN = 12
PLAN_REACHES = timedelta(days=7)
_TIMES = ("slots", "apply_at", "effective_at", "valid_until")
_EXPECTED = ("p_late", "expected_load_q90_per_s", "expected_recovery_s")
_REALISED = ["confirmed", "dry_run"]  # of a dry run too is shown what the job did meanwhile


def due_steps(plans: DataFrame, log: DataFrame, since: datetime, as_of: datetime) -> DataFrame:
    """Return the steps of the days shown that the controller decided on, of plans and its own, with their outcomes.

    Args:
        plans: gold.plans.
        log: ops.control_log.
        since: begin of the time shown.
        as_of: its end.
    """
    results = F.broadcast(step_outcomes(log, since.date(), as_of.date()))
    # A plan reaches a day or two ahead; the partition column keeps older ones closed.
    dates = F.col("date").between(F.lit((since - PLAN_REACHES).date()), F.lit(as_of.date()))
    due = F.col("apply_at").between(F.lit(since), F.lit(as_of)) & (F.col("as_of") < F.lit(as_of))
    planned = plans.where(dates & due).select("as_of", *STEP, *_TIMES, *_EXPECTED)
    # Its own steps have no forecast; they are in effect until the next step.
    unknown = {name: F.lit(None).cast("double") for name in _EXPECTED}
    times = {name: F.col("at") for name in ("as_of", "apply_at", "effective_at")}
    own = own_steps(log, since, as_of).withColumns({**unknown, **times, "valid_until": F.lit(None).cast("timestamp")})
    reported = own.join(results, [*STEP]).withColumn("outcome", F.concat("by", "outcome")).drop("by", "at")
    return planned.join(results, [*STEP]).unionByName(reported)


def recent_rescales(rescales: DataFrame, since: datetime, as_of: datetime) -> DataFrame:
    """Return the rescales and restarts of the days shown."""
    of_days = F.col("date").between(F.lit(since.date()), F.lit(as_of.date()))
    inside = of_days & F.col("started_at").between(F.lit(since), F.lit(as_of))
    return rescales.where(inside).select("cluster", "job", "started_at", "kind", "downtime_s", "catch_up_s")


def newest_backtests(backtests: DataFrame, as_of: Column) -> DataFrame:
    """Return the rows of the newest comparison of policies at or before ``as_of``."""
    made = backtests.where(F.col("as_of") <= as_of)
    return made.join(F.broadcast(made.agg(F.max("as_of").alias("as_of"))), "as_of", "left_semi")


def measure_outcome(load: pd.DataFrame, rescales: pd.DataFrame) -> Realised | None:
    """Return how a job ran in the days shown; None when it was not observed.

    Args:
        load: its bins of five minutes: ``bin``, ``slots``, ``late_share``.
        rescales: its rows of :func:`recent_rescales`.
    """
    if load.empty:
        return None
    days = len(load) * BIN / timedelta(days=1)  # that were observed
    recovery_s = (rescales["downtime_s"] + rescales["catch_up_s"]).dropna().astype(float)
    return Realised(
        days=days,
        late_minutes_per_day=float(np.nansum(load["late_share"].astype(float))) * BIN.total_seconds() / 60.0 / days,
        slot_hours_per_day=float(np.nansum(load["slots"].astype(float))) * BIN.total_seconds() / 3600.0 / days,
        rescales_per_day=float((rescales["kind"] == "rescale").sum()) / days,
        restarts_per_day=float((rescales["kind"] == "restart").sum()) / days,
        recovery_s=float(recovery_s.median()) if len(recovery_s) else None,
    )


def list_outcomes(steps: pd.DataFrame, load: pd.DataFrame, rescales: pd.DataFrame, as_of: datetime) -> list[Outcome]:
    """Return a job's latest due steps with their outcomes, the newest first.

    A step is in effect until the next one that is, or until it ends.

    Args:
        steps: its rows of :func:`due_steps`.
        load: its bins, see :func:`measure_outcome`, with ``rate_per_s``; times without a zone are UTC throughout.
        rescales: its rows of :func:`recent_rescales`.
        as_of: the time of the page.
    """
    ordered = steps.sort_values(["apply_at", "as_of"], ignore_index=True)
    now = pd.Timestamp(as_of).tz_convert("UTC").tz_localize(None)
    result = []
    for place, row in enumerate(ordered.to_dict("records")):
        later = ordered.loc[place + 1 :]
        following = later.loc[later["final_status"].isin(_REALISED), "effective_at"]
        ends = [timestamp for timestamp in (row["valid_until"], following.min(), now) if not pd.isna(timestamp)]
        result.append(_outcome(row, min(ends), load, rescales))
    return result[::-1][:OUTCOMES_SHOWN]


def _outcome(row: dict[Any, Any], end: Any, load: pd.DataFrame, rescales: pd.DataFrame) -> Outcome:
    begin = row["effective_at"]
    during = load[(load["bin"] >= begin) & (load["bin"] < end)] if row["final_status"] in _REALISED else load.iloc[:0]
    distance = (rescales["started_at"] - row["decided_at"]).abs()
    own = rescales[(distance <= NEAR) & (rescales["kind"] == "rescale")] if row["final_status"] == "confirmed" else None
    took = None if own is None or own.empty else own.loc[distance[own.index].idxmin()]
    return Outcome(
        apply_at=pd.Timestamp(row["apply_at"]).tz_localize("UTC").to_pydatetime(),
        status=str(row["outcome"]),
        slots=int(row["slots"]),
        ran_slots=optional_number(during["slots"].mean()),
        load_q90_per_s=optional_number(row["expected_load_q90_per_s"]),
        load_per_s=optional_number(during["rate_per_s"].max()),
        p_late=optional_number(row["p_late"]),
        late_minutes=None if during.empty else float(during["late_share"].sum()) * BIN.total_seconds() / 60.0,
        recovery_s=optional_number(row["expected_recovery_s"]),
        took_s=None if took is None else optional_number(took["downtime_s"] + took["catch_up_s"]),
        minutes=max((end - begin) / timedelta(minutes=1), 0.0),
    )


def policy_costs(rows: pd.DataFrame) -> list[PolicyCost]:
    """Return a job's rows of gold.backtests, the cheapest first and those that failed last."""
    ordered = rows.sort_values(["cost_vs_clairvoyant", "policy"], na_position="last")
    return [
        PolicyCost(
            policy=str(row["policy"]),
            cost_vs_clairvoyant=optional_number(row["cost_vs_clairvoyant"]),
            rescales_per_day=optional_number(row["rescales_per_day"]),
            late_minutes_per_day=optional_number(row["late_minutes_per_day"]),
            slot_hours=optional_number(row["slot_hours"]),
            days=optional_number(row["days"]),
            recommended=bool(row["recommended"] == True),  # noqa: E712 - null is no
            in_use=bool(row["in_use"] == True),  # noqa: E712
            note="" if pd.isna(row["note"]) else str(row["note"]),
            error="" if pd.isna(row["error"]) else str(row["error"]),
        )
        for row in ordered.to_dict("records")
    ]


def optional_number(value: Any) -> float | None:
    """Return a number, None for a null."""
    return None if pd.isna(value) else float(value)
