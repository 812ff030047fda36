"""The newest rows of jobs: graphs, states, forecasts and memories. First keys are read, then the rows of the newest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from include.lake_table import LakeTable, is_in
from include.stage_names import PROFILING, Stage
from spark_jobs.by_job import Job, list_keys, split_columns
from spark_jobs.few_rows import find_newest
from spark_jobs.newest_rows import LIMITS, LOOKBACK, OF_EVENTS, QUANTILES, STALE

_OPERATOR = ("position", "operator", "vertex_id", "upstream", "parallelism", "status", *LIMITS)
_BINS = ("operator", "bin_start_s", "bin_s", "fallback", *QUANTILES, *OF_EVENTS)
_JOB = ["cluster", "job"]


def list_graphs(rows: pa.Table) -> dict[Job, dict[str, Any]]:
    """Return of each job its id, its operators, and when they were last seen, in epoch seconds.

    A resubmitted job has a new id; operators of the old one are left out. The rows are of the newest hour of each job.
    """
    by_job: dict[Job, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        by_job.setdefault((row["cluster"], row["job"]), []).append(row)
    return {job: _describe_graph(own) for job, own in by_job.items()}


def _describe_graph(rows: list[dict[str, Any]]) -> dict[str, Any]:
    job_id = max(rows, key=lambda row: (row["observed_at"], row["job_id"] or ""))["job_id"]
    current = sorted((row for row in rows if row["job_id"] == job_id), key=_order_operators)
    operators = [{name: row[name] for name in _OPERATOR if row[name] is not None} for row in current]
    observed_at = max(row["observed_at"] for row in current)
    return {"job_id": job_id or "", "operators": operators, "seen_at_s": int(observed_at.timestamp())}


def _order_operators(row: Mapping[str, Any]) -> list[Any]:
    return [(row[name] is not None, row[name]) for name in ("position", "operator", "vertex_id")]


def list_job_states(rows: pa.Table) -> dict[Job, dict[str, Any]]:
    """Return of each job its state as last seen, times in epoch seconds, by the rows of its newest hour."""
    result: dict[Job, dict[str, Any]] = {}
    for row in sorted(rows.to_pylist(), key=lambda row: row["observed_at"]):
        ended_at = row["ended_at"]
        result[row["cluster"], row["job"]] = {
            "state": row["state"],
            "job_type": row["job_type"],
            "ended_at_s": None if ended_at is None else int(ended_at.timestamp()),
        }
    return result


def read_newest_forecasts(table: LakeTable, as_of: datetime, jobs: list[Job]) -> list[dict[str, Any]]:
    """Return of the newest forecast of each job by ``as_of``, in the order of ``jobs``, what JobState has of it.

    ``bins`` of all its sources; ``fallback`` of a bin is why its source's forecast is none to plan ahead with, null
    where it is one.
    """
    span = (as_of - LOOKBACK).date(), as_of.date(), f"as_of <= '{as_of.isoformat()}'"
    columns = [*_JOB, "as_of", "operator", "bin_start", "bin_s", "fallback_reason", "forecast_version"]
    rows = find_newest(table, [*columns, *QUANTILES, *OF_EVENTS], ["as_of"], span, jobs=set(jobs))
    is_stale = pc.fill_null(pc.starts_with(rows["fallback_reason"], STALE), True)
    fallback = pc.if_else(is_stale, pa.scalar(None, pa.string()), rows["fallback_reason"])
    bins = rows.append_column("fallback", fallback).append_column("bin_start_s", _seconds(rows["bin_start"]))
    of_jobs = rows.group_by(_JOB).aggregate([("as_of", "max"), ("forecast_version", "max")])
    made = {"forecast_as_of_s": _seconds(of_jobs["as_of_max"]), "forecast_version": of_jobs["forecast_version_max"]}
    facts = dict(zip(list_keys(of_jobs), pa.table(made).to_pylist(), strict=True))
    own = zip(jobs, split_columns(bins, _BINS, jobs), strict=True)
    return [{"bins": columns, **facts.get(job, {})} for job, columns in own]


def _seconds(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    return moments.cast(pa.timestamp("s", "UTC"), safe=False).cast(pa.int64())


def read_newest_memories(
    table: LakeTable, as_of: datetime, also: Collection[str] = ()
) -> dict[Job, dict[str, str | None]]:
    """Return of each job its ``memory`` and ``memory_policy`` as last left before ``as_of``.

    A stage that runs again for the same moment thereby starts from the same memory. Of one moment the plan's counts,
    since it was made with the others. A profile is expensive, and is not forgotten for want of plans. ``also`` are
    stages that come before the asking one, whose memories of the very moment count too.
    """
    earlier = f"as_of < '{as_of.isoformat()}'"
    of_now = f"as_of = '{as_of.isoformat()}' AND {is_in('stage', map(str, also))}"
    where, profile = f"({earlier} OR ({of_now}))", PROFILING
    since, until = (as_of - LOOKBACK).date(), as_of.date()
    rows = find_newest(
        table,
        [*_JOB, "as_of", "stage", "memory", "policy"],
        ["as_of"],
        (since, until, f"{where} AND stage <> '{profile}'"),
        (date.min, date.max, f"{where} AND stage = '{profile}'"),
    )
    ordered = sorted(rows.to_pylist(), key=lambda row: (row["stage"] == str(Stage.PLAN), row["stage"]))
    return {(row["cluster"], row["job"]): {"memory": row["memory"], "memory_policy": row["policy"]} for row in ordered}
