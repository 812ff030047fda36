"""Windows of jobs, read by column: how long each was seen, and the latest of some.

They are gone through in parts: of two days a few columns, of the latest the rows of the jobs that are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.lake_table import LakeTable, is_after, is_between
from spark_jobs.by_job import Job, find_jobs, join_parts, list_keys
from spark_jobs.newest_rows import LOOKBACK
from spark_jobs.plan_inputs.windows import COLUMNS, READ
from spark_jobs.source_inputs.renames import OperatorName

_NAMES = ("cluster", "job", "operator")
_SEEN = ("cluster", "job", "window_start", "window_s", "samples", "busy_share")
_MEASURED = ("end_s", "is_busy", "is_monitored", "is_reported")
_OF_SOURCE = ("operator", "is_source", "target_data_rate_per_s")


def read_observed_until(windows: LakeTable, as_of: datetime) -> dict[Job, dict[str, Any]]:
    """Return of each job ``observed_until_s``, the end of its last window, and what was measured of it.

    ``is_busy_measured``, and ``unseen_sources``, the sources that were monitored at work while nothing told their load.
    Nothing later than ``as_of`` is looked at.
    """
    by = [*_NAMES, "is_source"]
    parts = join_parts(windows.read_parts([*_SEEN, *_OF_SOURCE], (as_of - LOOKBACK).date(), as_of.date()))
    highest = [_find_highest(_select_measured(rows, as_of), by) for rows in parts]
    if not highest:
        return {}
    of_operators = _find_highest(pa.concat_tables(highest), by)
    is_unseen = pc.and_(of_operators["is_monitored"], pc.invert(of_operators["is_reported"]))
    unseen: dict[Job, list[str]] = {}
    for row in of_operators.filter(pc.and_(is_unseen, pc.fill_null(of_operators["is_source"], False))).to_pylist():
        if row["operator"] is not None:
            unseen.setdefault((row["cluster"], row["job"]), []).append(row["operator"])
    return {
        job: {
            "observed_until_s": row["end_s"],
            "is_busy_measured": row["is_busy"],
            "unseen_sources": tuple(sorted(unseen.get(job, ()))),
        }
        for row in _find_highest(of_operators, ["cluster", "job"]).to_pylist()
        for job in [(row["cluster"], row["job"])]
    }


def _find_highest(rows: pa.Table, by: list[str]) -> pa.Table:
    """Return the highest values of :data:`_MEASURED` of each group."""
    made = rows.group_by(by, use_threads=False).aggregate([(name, "max") for name in _MEASURED])
    return made.select([*by, *(f"{name}_max" for name in _MEASURED)]).rename_columns([*by, *_MEASURED])


def _start_s(rows: pa.Table) -> pa.ChunkedArray:
    return rows["window_start"].cast(pa.timestamp("s", "UTC"), safe=False).cast(pa.int64())


def _is_over(rows: pa.Table, as_of: datetime) -> pa.ChunkedArray:
    return pc.less_equal(pc.add(_start_s(rows), rows["window_s"]), as_of.timestamp())


def _select_measured(rows: pa.Table, as_of: datetime) -> pa.Table:
    """Return the windows in which something was seen of the job, with what they tell of it."""
    has_samples = pc.greater(pc.fill_null(rows["samples"], 1), 0)
    rows = rows.filter(pc.and_(has_samples, pc.fill_null(_is_over(rows, as_of), False)))
    # As Spark compares: what is no number is greater than any.
    is_busy = pc.fill_null(pc.or_(pc.greater(rows["busy_share"], 0.0), pc.is_nan(rows["busy_share"])), False)
    is_monitored = pc.or_(pc.fill_null(pc.greater_equal(rows["samples"], 2), False), is_busy)
    made = {
        "end_s": pc.add(_start_s(rows), rows["window_s"]),
        "is_busy": is_busy,
        "is_monitored": is_monitored,
        "is_reported": pc.is_valid(rows["target_data_rate_per_s"]),
    }
    for name, values in made.items():
        rows = rows.append_column(name, values)
    return rows


def read_clusters_past(windows: LakeTable, horizon_end: datetime) -> dict[str, int]:
    """Return the clusters that were observed after the horizon's end, and until when, in epoch seconds.

    To plan for them would be to plan the past.
    """
    where = is_after("window_start", horizon_end)
    later = windows.read(["cluster", "window_start"], horizon_end.date(), date.max, where)
    starts = pa.table({"cluster": later["cluster"], "start_s": _start_s(later)})
    newest = starts.group_by("cluster").aggregate([("start_s", "max")])
    return dict(zip(newest["cluster"].to_pylist(), newest["start_s_max"].to_pylist(), strict=True))


def read_recent_windows(
    windows: LakeTable,
    observed: timedelta,
    as_of: datetime,
    jobs: Collection[Job],
    current: Mapping[OperatorName, str | None],
    *,
    measures: Sequence[str] = READ,
    which: str = "true",
) -> pa.Table:
    """Return the windows of some jobs that began within ``observed`` before ``as_of`` and have ended by then.

    A target data rate that is no more than a lower bound of the demand is null: what arrived is not known. Measures
    have their names in Observations; ``which`` is a further condition, as SQL.
    """
    since = as_of - observed
    columns = [COLUMNS.get(name, name) for name in measures]
    read = [*_NAMES, "vertex_id", "window_start", "window_s", "parallelism", "disturbed", *columns]
    where = f"{is_between('window_start', since, as_of)} AND {which}"
    read.append("target_is_lower_bound")
    parts = join_parts(windows.read_parts(read, since.date(), as_of.date(), where))
    chosen = [windows.read(read, date.min, date.max, "false"), *(_select_jobs(one, as_of, list(jobs)) for one in parts)]
    rows = _follow_names(pa.concat_tables(chosen), current)
    made = {name: rows[name] for name in (*_NAMES, "window_s", "parallelism", "disturbed")}
    made |= {"window_start_s": _start_s(rows)}
    made |= {name: rows[column] for name, column in zip(measures, columns, strict=True)}
    is_bound = pc.fill_null(rows["target_is_lower_bound"], False)
    rate = made["target_data_rate_per_s"]
    return pa.table(made | {"target_data_rate_per_s": pc.if_else(is_bound, pa.scalar(None, rate.type), rate)})


def _select_jobs(rows: pa.Table, as_of: datetime, jobs: Sequence[Job]) -> pa.Table:
    """Return the windows of some jobs that are over."""
    rows = rows.filter(pc.fill_null(_is_over(rows, as_of), False))
    return rows.filter(pa.array(find_jobs(rows, jobs) >= 0))


def _follow_names(rows: pa.Table, current: Mapping[OperatorName, str | None]) -> pa.Table:
    """Return the rows of operators under their present names, without those of operators that have gone."""
    jobs = {(cluster, job) for cluster, job, _, _ in current}
    if not jobs:
        return rows
    is_renamed = np.array([job in jobs for job in list_keys(rows)], bool)
    own = rows.filter(pa.array(is_renamed))
    names = list(zip(*(own[name].to_pylist() for name in (*_NAMES, "vertex_id")), strict=True))
    present = pa.array([current.get(name, name[2]) for name in names], pa.string())
    own = own.set_column(own.schema.get_field_index("operator"), "operator", present)
    return pa.concat_tables([rows.filter(pa.array(~is_renamed)), own.filter(pc.is_valid(own["operator"]))])
