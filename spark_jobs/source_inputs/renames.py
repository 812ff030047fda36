"""History under the present names of operators: a renamed chain keeps its own, that of a removed operator ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.domain.operator_matching import PlacedOperator, follow_operators
from include.tables import OPERATOR_KEYS
from spark_jobs.by_job import Job, find_jobs, list_keys
from spark_jobs.lake import Lake, rows_of

_JOB = ("cluster", "job")
_OPERATOR = (*_JOB, "operator", "vertex_id")
_KEYS = (*_OPERATOR, "position", "upstream", "observed_at")
FormerVersions = Mapping[tuple[str, str], list[dict[str, Any]]]
"""Of each job whose operators have changed, rows of silver.operator_keys."""
OperatorName = tuple[str, str, str, str | None]
"""Cluster, job, operator and vertex id."""
_RENAMES = {"cluster": "STRING", "job": "STRING", "operator": "STRING", "vertex_id": "STRING", "current": "STRING"}


def read_versions(
    lake: Lake, since: datetime, as_of: datetime, version: int | None = None
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return rows of silver.operator_keys of each job whose operators changed from ``since`` until ``as_of``."""
    where = f"observed_at <= '{as_of.isoformat()}'"
    keys = lake.few(OPERATOR_KEYS, version).read(_KEYS, since.date(), as_of.date(), where)
    last = keys.group_by([*_OPERATOR]).aggregate([("observed_at", "max")])
    bounds = last.group_by([*_JOB]).aggregate([("observed_at_max", "min"), ("observed_at_max", "max")])
    changed = bounds.filter(pc.less(bounds["observed_at_max_min"], bounds["observed_at_max_max"]))
    result: dict[Job, list[dict[str, Any]]] = defaultdict(list)
    for row in keys.filter(pa.array(find_jobs(keys, list_keys(changed)) >= 0)).to_pylist():
        result[row["cluster"], row["job"]].append(row)
    return result


def read_renames(lake: Lake, since: datetime, as_of: datetime) -> DataFrame | None:
    """Return ``cluster, job, operator, vertex_id, current`` of every name that an operator no longer has.

    None without any.  ``current`` is null for an operator that has gone; ``vertex_id`` is null in one more row of a
    name that only ever meant one operator.  Arguments as of :func:`read_versions`.
    """
    current = current_names(read_versions(lake, since, as_of))
    renames = [dict(zip(_OPERATOR, name, strict=True)) | {"current": now} for name, now in current.items()]
    return rows_of(lake.spark, _RENAMES, renames) if renames else None


def current_names(versions: FormerVersions) -> dict[OperatorName, str | None]:
    """Return the present name of every operator that has another, null of one that has gone."""
    return {
        (cluster, job, name, vertex_id): current
        for (cluster, job), rows in versions.items()
        for (name, vertex_id), current in _with_bare_names(follow_operators(versions_of(rows))).items()
        if current != name
    }


def follow_renames(rows: DataFrame, renames: DataFrame | None) -> DataFrame:
    """Return rows of operators under their present names, without those of operators that have gone."""
    if renames is None:
        return rows
    known = F.broadcast(renames.withColumn("is_former", F.lit(True))).alias("r")
    is_same = [F.col(f"o.{name}").eqNullSafe(F.col(f"r.{name}")) for name in _OPERATOR]
    result = rows.alias("o").join(known, is_same, "left").where("is_former IS NULL OR current IS NOT NULL")
    renamed = F.coalesce("r.current", "o.operator").alias("operator")
    return result.select(*[renamed if name == "operator" else F.col(f"o.{name}") for name in rows.columns])


def _with_bare_names(current: Mapping[tuple[str, str], str | None]) -> dict[tuple[str, str | None], str | None]:
    """Add the names that only ever meant one operator, without its id: not every row has one."""
    meanings: dict[str, set[str | None]] = defaultdict(set)
    for (name, _), now in current.items():
        meanings[name].add(now)
    result: dict[tuple[str, str | None], str | None] = {}
    result.update({(name, None): now for name, (now, *others) in meanings.items() if not others})
    result.update({(name, vertex_id): now for (name, vertex_id), now in current.items()})
    return result


def versions_of(rows: Iterable[Any]) -> list[list[PlacedOperator]]:
    """Return a job's graphs in the order in which they were seen."""
    at: dict[Any, list[PlacedOperator]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["observed_at"], row["operator"] or "", row["vertex_id"] or "")):
        placed = PlacedOperator(row["operator"], row["vertex_id"], row["position"], tuple(row["upstream"]))
        at[row["observed_at"]].append(placed)
    return [at[moment] for moment in sorted(at)]
