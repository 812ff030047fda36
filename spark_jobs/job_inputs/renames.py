"""History under the present names of operators: a renamed chain keeps its own, that of a removed operator ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from include.domain.operator_matching import PlacedOperator, follow_operators
from include.tables import OPERATOR_KEYS
from spark_jobs.lake import Lake, rows_of
from spark_jobs.timestamps import timestamp_column

_JOB = ("cluster", "job")
_OPERATOR = (*_JOB, "operator", "vertex_id")
_RENAMES = {"cluster": "STRING", "job": "STRING", "operator": "STRING", "vertex_id": "STRING", "current": "STRING"}


def select_versions(operator_keys: DataFrame, since: datetime, as_of: datetime) -> DataFrame:
    """Return the rows of silver.operator_keys of jobs whose operators changed in a time.

    Args:
        operator_keys: silver.operator_keys.
        since: how far back history is read.
        as_of: nothing later is looked at.
    """
    keys = operator_keys.where(
        F.col("date").between(F.lit(since.date()), F.lit(as_of.date()))
        & (F.col("observed_at") <= timestamp_column(as_of))
    )
    by_job = Window.partitionBy(*_JOB)
    observed = keys.withColumns(
        {
            "newest": F.max("observed_at").over(by_job),
            "last": F.max("observed_at").over(Window.partitionBy(*_OPERATOR)),
        }
    )
    changed = observed.withColumn("is_changed", F.max(F.col("last") < F.col("newest")).over(by_job)).where("is_changed")
    return changed.select(*_OPERATOR, "position", "upstream", "observed_at")


def collect_versions(operator_keys: DataFrame, since: datetime, as_of: datetime) -> DataFrame:
    """Return ``cluster, job, versions``: rows of :func:`select_versions` as JSON, for :func:`versions_of`."""
    one = F.struct("operator", "vertex_id", "position", "upstream", F.unix_micros("observed_at").alias("observed_at"))
    rows = select_versions(operator_keys, since, as_of).groupBy(*_JOB)
    return rows.agg(F.to_json(F.sort_array(F.collect_list(one))).alias("versions"))


def read_renames(lake: Lake, since: datetime, as_of: datetime) -> DataFrame | None:
    """Return ``cluster, job, operator, vertex_id, current`` of every name that an operator no longer has.

    None without any.  ``current`` is null for an operator that has gone; ``vertex_id`` is null in one more row of a
    name that only ever meant one operator.  Arguments as of :func:`select_versions`.
    """
    return find_renames(lake, lake.read(OPERATOR_KEYS), since, as_of)


def find_renames(lake: Lake, operator_keys: DataFrame, since: datetime, as_of: datetime) -> DataFrame | None:
    """Return what :func:`read_renames` does, of given rows of silver.operator_keys."""
    former = select_versions(operator_keys, since, as_of).collect()
    renames = [
        {"cluster": cluster, "job": job, "operator": name, "vertex_id": vertex_id, "current": current}
        for (cluster, job), rows in _by_job(former).items()
        for (name, vertex_id), current in _with_bare_names(follow_operators(versions_of(rows))).items()
        if current != name
    ]
    return rows_of(lake.spark, _RENAMES, renames) if renames else None


def follow_renames(rows: DataFrame, renames: DataFrame | None) -> DataFrame:
    """Return rows of operators under their present names, without those of operators that have gone.

    Args:
        rows: with ``cluster, job, operator, vertex_id``.
        renames: of :func:`read_renames`.
    """
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


def _by_job(rows: Iterable[Any]) -> dict[tuple[str, str], list[Any]]:
    result: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for row in rows:
        result[row["cluster"], row["job"]].append(row)
    return result


def versions_of(rows: Iterable[Any]) -> list[list[PlacedOperator]]:
    """Return a job's graphs in the order in which they were seen."""
    at: dict[Any, list[PlacedOperator]] = defaultdict(list)
    for row in rows:
        placed = PlacedOperator(row["operator"], row["vertex_id"], row["position"], tuple(row["upstream"]))
        at[row["observed_at"]].append(placed)
    return [at[moment] for moment in sorted(at)]
