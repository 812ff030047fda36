"""Rows of the control log for a person: those of one job in a span of time, and which jobs it knows."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from include.lake_table import LakeTable, is_between, is_in
from include.tables import CONTROL_LOG

JSON_COLUMNS = ("observed", "desired", "limits", "outcome", "history_before", "history", "request")


def read_log(lake: str, cluster: str, job: str, since: datetime, until: datetime) -> list[dict[str, Any]]:
    """Return a job's rows in their order, with ``state`` as observed; the times have a time zone."""
    where = " AND ".join([is_in("cluster", [cluster]), is_in("job", [job]), is_between("at", since, until)])
    rows = LakeTable(lake, CONTROL_LOG).read(list(CONTROL_LOG.columns), since.date(), until.date(), where)
    listed = rows.sort_by([("lease_number", "ascending"), ("entry", "ascending")]).to_pylist()
    return [row | {"state": json.loads(row["observed"])["state"]} for row in listed]


def read_logged_jobs(lake: str, since: datetime, until: datetime) -> list[str]:
    """Return the names (``cluster/job``) of the jobs that have rows on the days of a span of time."""
    rows = LakeTable(lake, CONTROL_LOG).read(["cluster", "job"], since.date(), until.date())
    result = rows.group_by(["cluster", "job"]).aggregate([]).to_pylist()
    return sorted(f"{row['cluster']}/{row['job']}" for row in result)


def plain_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of :func:`read_log` as JSON can hold it, with its JSON columns as values."""
    made: dict[str, Any] = {}
    for name, value in row.items():
        if name in JSON_COLUMNS:
            made[name] = None if value is None else json.loads(value)
        elif name in {"parallelism_from", "parallelism_to", "operators"}:
            made[name] = None if value is None else dict(value)
        else:
            made[name] = value.isoformat() if hasattr(value, "isoformat") else value
    return made
