"""The newest rows of jobs: graphs, states, forecasts and memories. First keys are read, then the rows of the newest."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import date, datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from include.lake_table import LakeTable, is_in
from include.stage_names import PROFILING, Stage
from spark_jobs.newest_rows import LIMITS, LOOKBACK, OF_EVENTS, QUANTILES, STALE
from spark_jobs.plan_inputs.by_job import Job, find_jobs, group_structs, list_keys, read_chosen

_OPERATOR = ("position", "operator", "vertex_id", "upstream", "parallelism", "status", *LIMITS)
_BINS = ("operator", "bin_start_s", "bin_s", "fallback", *QUANTILES, *OF_EVENTS)
_JOB = ["cluster", "job"]


def list_graphs(rows: pa.Table) -> dict[Job, dict[str, Any]]:
    """Return of each job its id, its operators as JSON, and when they were last seen, in epoch seconds.

    A resubmitted job has a new id; operators of the old one are left out.

    Args:
        rows: of silver.job_graphs, of the newest hour of each job.
    """
    by_job: dict[Job, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        by_job.setdefault((row["cluster"], row["job"]), []).append(row)
    return {job: _describe_graph(own) for job, own in by_job.items()}


def _describe_graph(rows: list[dict[str, Any]]) -> dict[str, Any]:
    job_id = max(rows, key=lambda row: (row["observed_at"], row["job_id"] or ""))["job_id"]
    current = sorted((row for row in rows if row["job_id"] == job_id), key=_order_operators)
    # As Spark writes JSON: without what is null.
    operators = [{name: row[name] for name in _OPERATOR if row[name] is not None} for row in current]
    observed_at = max(row["observed_at"] for row in current)
    return {"job_id": job_id, "operators": json.dumps(operators), "seen_at_s": int(observed_at.timestamp())}


def _order_operators(row: Mapping[str, Any]) -> list[Any]:
    return [(row[name] is not None, row[name]) for name in ("position", "operator", "vertex_id")]


def list_job_states(rows: pa.Table) -> dict[Job, dict[str, Any]]:
    """Return of each job its state as last seen, times in epoch seconds.

    Args:
        rows: of silver.jobs, of the newest hour of each job.
    """
    result: dict[Job, dict[str, Any]] = {}
    for row in sorted(rows.to_pylist(), key=lambda row: row["observed_at"]):
        ended_at = row["ended_at"]
        result[row["cluster"], row["job"]] = {
            "state": row["state"],
            "job_type": row["job_type"],
            "ended_at_s": None if ended_at is None else int(ended_at.timestamp()),
        }
    return result


def read_newest_forecasts(table: LakeTable, as_of: datetime, jobs: list[Job]) -> pa.Table:
    """Return the newest forecast of each job by ``as_of``, in the order of ``jobs``: null without one.

    ``bins`` of all its sources, as structs; ``fallback`` of a bin is why its source's forecast is none to plan ahead
    with, null where it is one.
    """
    since, until = (as_of - LOOKBACK).date(), as_of.date()
    made = f"as_of <= '{as_of.isoformat()}'"
    keys = [
        part.group_by([*_JOB, "as_of"]).aggregate([]) for part in table.read_parts([*_JOB, "as_of"], since, until, made)
    ]
    newest = dict[Job, datetime]()
    for part in keys:
        for job, at in zip(list_keys(part), part["as_of"].to_pylist(), strict=True):
            newest[job] = max(newest.get(job, at), at)
    wanted = [newest.get(job) for job in jobs]
    moments = {at for at in wanted if at is not None}
    columns = [*_JOB, "as_of", "operator", "bin_start", "bin_s", "fallback_reason", "forecast_version"]
    of_jobs = partial(_select_newest, jobs=jobs, wanted=wanted)
    rows = read_chosen(table, [*columns, *QUANTILES, *OF_EVENTS], (since, until), is_in("as_of", moments), of_jobs)
    is_stale = pc.fill_null(pc.starts_with(rows["fallback_reason"], STALE), True)
    fallback = pc.if_else(is_stale, pa.scalar(None, pa.string()), rows["fallback_reason"])
    bins = rows.append_column("fallback", fallback).append_column("bin_start_s", _seconds(rows["bin_start"]))
    of_jobs = rows.group_by(_JOB).aggregate([("forecast_version", "max")])
    versions = dict(zip(list_keys(of_jobs), of_jobs["forecast_version_max"].to_pylist(), strict=True))
    return pa.table(
        {
            "bins": group_structs(bins, _BINS, jobs),
            "forecast_as_of_s": pa.array([None if at is None else int(at.timestamp()) for at in wanted], pa.int64()),
            "forecast_version": pa.array([versions.get(job) for job in jobs], pa.string()),
        }
    )


def _seconds(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    return moments.cast(pa.timestamp("s", "UTC"), safe=False).cast(pa.int64())


def _select_newest(rows: pa.Table, jobs: list[Job], wanted: list[datetime | None]) -> pa.Table:
    """Return the rows of each job that are as of its own moment."""
    moments = pa.array([*wanted, None], rows.schema.field("as_of").type)  # the last one is that of no job
    own = moments.take(pa.array(find_jobs(rows, jobs) % (len(jobs) + 1)))
    return rows.filter(pc.fill_null(pc.equal(rows["as_of"], own), False))


def read_newest_memories(
    table: LakeTable, as_of: datetime, also: Collection[str] = ()
) -> dict[Job, dict[str, str | None]]:
    """Return of each job its ``memory`` and ``memory_policy`` as last left before ``as_of``.

    A stage that runs again for the same moment thereby starts from the same memory. Of one moment the plan's counts,
    since it was made with the others. A profile is expensive, and is not forgotten for want of plans.

    Args:
        table: gold.policy_memory.
        as_of: the moment.
        also: stages that come before the asking one, whose memories of the very moment count too.
    """
    earlier = f"as_of < '{as_of.isoformat()}'"
    of_now = f"as_of = '{as_of.isoformat()}' AND {is_in('stage', map(str, also))}"
    where, profile = f"({earlier} OR ({of_now}))", PROFILING
    since, until = (as_of - LOOKBACK).date(), as_of.date()
    spans = (
        (since, until, f"{where} AND stage <> '{profile}'"),
        (date.min, date.max, f"{where} AND stage = '{profile}'"),
    )
    newest: dict[Job, tuple[datetime, bool, str]] = {}
    for begin, end, condition in spans:
        for part in table.read_parts([*_JOB, "as_of", "stage"], begin, end, condition):
            columns = (part["as_of"].to_pylist(), part["stage"].to_pylist())
            for job, at, stage in zip(list_keys(part), *columns, strict=True):
                order = (at, stage == str(Stage.PLAN), stage)
                newest[job] = max(newest.get(job, order), order)
    moments = {at for at, _, _ in newest.values()}
    result: dict[Job, dict[str, str | None]] = {}
    for begin, end, condition in spans if moments else ():
        chosen = f"{condition} AND {is_in('as_of', moments)}"
        for part in table.read_parts([*_JOB, "as_of", "stage", "memory", "policy"], begin, end, chosen):
            names = ("as_of", "stage", "memory", "policy")
            for job, at, stage, memory, policy in zip(
                list_keys(part), *(part[name].to_pylist() for name in names), strict=True
            ):
                if newest[job][0] == at and newest[job][2] == stage:
                    result[job] = {"memory": memory, "memory_policy": policy}
    return result
