"""What plans left in the lake for the controller: newest plans, memories and job graphs of all jobs, one read each.

A table without a new Delta version is not read again: the same object is returned. Reads are bounded by date.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from controller.view.load_forecasts import COLUMNS as FORECAST_COLUMNS
from controller.view.load_forecasts import NO_FORECASTS, LoadForecasts, forecasts_of
from controller.view.plan_rows import JobKey, JobPlan, PolicyMemory
from include.control.restores import RestoreStore
from include.domain.graph import BY_KEY, MAX_PARALLELISM, JobGraph, Operator
from include.domain.operator_matching import PlacedOperator
from include.domain.slots import DEFAULT_GROUP
from include.lake_table import LakeTable, date_of, is_after, is_between, is_in, timestamp_of
from include.stage_names import Stage
from include.tables import FORECASTS, JOB_GRAPHS, OPERATOR_KEYS, PLANS, POLICY_MEMORY
from include.tables.plan_row import READ_COLUMNS, PlanRow

T = TypeVar("T")
log = logging.getLogger(__name__)
LOOKBACK = timedelta(days=2)
"""What is older is not read: a job that was neither seen nor planned since then has left."""
_JOB = ["cluster", "job"]
_TABLES = (PLANS, POLICY_MEMORY, JOB_GRAPHS, OPERATOR_KEYS, FORECASTS)
_KEYS = (*_JOB, "operator", "vertex_id", "position", "upstream", "observed_at")
_GRAPH = (
    *(*_JOB, "job_id", "observed_at", "operator", "position", "upstream", "ship_strategies"),
    *("max_parallelism", "partitions", "slot_sharing_group"),
)


class _Cached(NamedTuple):
    """What was read of a table, from what, and for how long it holds: until a row that lay in the future."""

    inputs: tuple[Any, ...]
    value: Any
    holds_until_s: float


class PlanTables:
    """Reader of the tables that planning writes."""

    def __init__(self, lake: str) -> None:
        self._tables = {table.name: LakeTable(lake, table) for table in _TABLES}
        self._restores = RestoreStore(lake)
        self._cache: dict[str, _Cached] = {}

    def read_plans(self, now_s: float) -> dict[JobKey, JobPlan]:
        """Return the newest plan of every job, whether it has steps, holds or was refused.

        Plans of before the lake was restored count for nothing: their steps may have been sent, and taken back.
        """

        def read(table: LakeTable) -> tuple[dict[JobKey, JobPlan], float]:
            restore = self._restores.read()
            where = "true" if restore is None else is_after("as_of", timestamp_of(restore.at_s))
            make = partial(_make_each, order=["step_index"], make=_plan_of)
            return _read_newest(table, READ_COLUMNS, "as_of", now_s, make, where=where)

        return self._read_once(PLANS.name, now_s, read, {})

    def read_memories(self, now_s: float) -> dict[JobKey, PolicyMemory]:
        """Return what the policy of the newest plan of every job left, of those that left something."""
        columns, stage = ("cluster", "job", "as_of", "policy", "memory"), str(Stage.PLAN)
        return self._read_once(
            POLICY_MEMORY.name,
            now_s,
            lambda table: _read_newest(table, columns, "as_of", now_s, _memories_of, where=is_in("stage", [stage])),
            {},
        )

    def read_graphs(self, now_s: float) -> dict[JobKey, JobGraph]:
        """Return every job's graph as last seen; operators of an earlier job id are left out."""
        make = partial(_make_each, order=["job_id", "position"], make=_graph_of)
        return self._read_once(
            JOB_GRAPHS.name, now_s, lambda table: _read_newest(table, _GRAPH, "observed_at", now_s, make), {}
        )

    def read_versions(self, now_s: float) -> dict[JobKey, list[tuple[PlacedOperator, ...]]]:
        """Return the graphs of every job as ingested, in the order in which they were seen."""
        return self._read_once(OPERATOR_KEYS.name, now_s, lambda table: _read_versions(table, now_s), {})

    def read_forecasts(self, now_s: float) -> LoadForecasts:
        """Return the forecasts behind the newest plans."""
        plans = self.read_plans(now_s)
        versions = sorted({plan.forecast_version for plan in plans.values() if plan.forecast_version})
        inputs = (tuple(versions),)
        return self._read_once(
            FORECASTS.name, now_s, lambda table: _read_forecasts(table, versions, now_s), NO_FORECASTS, inputs
        )

    def _read_once(
        self,
        name: str,
        now_s: float,
        read: Callable[[LakeTable], tuple[T, float]],
        instead: T,
        inputs: tuple[Any, ...] = (),
    ) -> T:
        """Return what a table holds; while it cannot be read what it held last, else ``instead``.

        A plan that was read once grows old and is refused for that; a job without a plan is guarded nevertheless.
        """
        try:
            return self._read_new(name, now_s, read, inputs)
        except Exception as error:  # one file that is gone or damaged must not stop what needs none of it
            log.error("%s cannot be read: %s: %s", name, type(error).__name__, str(error).partition("\n")[0])
            cached = self._cache.get(name)
            result: T = instead if cached is None else cached.value
            return result

    def _read_new(
        self, name: str, now_s: float, read: Callable[[LakeTable], tuple[T, float]], inputs: tuple[Any, ...]
    ) -> T:
        table, cached = self._tables[name], self._cache.get(name)
        inputs = (table.read_version(), _dates(now_s)[0], *inputs)
        if cached is None or now_s >= cached.holds_until_s or cached.inputs != inputs:
            cached = self._cache[name] = _Cached(inputs, *read(table))
        result: T = cached.value
        return result


def _dates(now_s: float) -> tuple[date, date]:
    return date_of(now_s - LOOKBACK.total_seconds()), date_of(now_s)


def _read_newest(
    table: LakeTable,
    columns: Sequence[str],
    at: str,
    now_s: float,
    make: Callable[[pa.Table], T],
    *,
    where: str = "true",
) -> tuple[T, float]:
    """Read the rows of each job's newest time: first all times, then the files that may hold them.

    Returns:
        what ``make`` makes of them, and until when (epoch seconds) that holds if nothing is written.
    """
    since, until = _dates(now_s)
    times = table.read([*_JOB, at], since, until, where)
    now = pa.scalar(timestamp_of(now_s), pa.timestamp("us", tz="UTC"))
    later = times.filter(pc.greater(times.column(at), now))
    holds_until_s = pc.min(later.column(at)).as_py().timestamp() if len(later) else float("inf")
    known = times.filter(pc.less_equal(times.column(at), now))
    newest = known.group_by(_JOB).aggregate([(at, "max")]).rename_columns([*_JOB, at])
    if not len(newest):
        return make(table.read(columns, until, until, "false")), holds_until_s
    made = pc.unique(newest.column(at)).to_pylist()
    # The range closes most files by their statistics, the list is exact.
    wanted = f"{where} AND {is_between(at, min(made), max(made))} AND {is_in(at, made)}"
    rows = table.read(columns, min(made).date(), until, wanted)
    return make(_join(rows, newest, [*_JOB, at])), holds_until_s


def _join(rows: pa.Table, wanted: pa.Table, keys: list[str]) -> pa.Table:
    """Return the rows whose keys are wanted, in their order; Arrow's own join takes no lists."""
    places = rows.select(keys).append_column("place", pa.array(range(len(rows)), pa.int64()))
    result = places.join(wanted.select(keys), keys, join_type="left semi")
    return rows.take(result.column("place").sort())


def _make_each(rows: pa.Table, order: Sequence[str], make: Callable[[list[dict[str, Any]]], T]) -> dict[JobKey, T]:
    """Return what is made of each job's rows in an order; a job whose rows cannot be used has none."""
    of_jobs: dict[JobKey, list[dict[str, Any]]] = {}
    for row in rows.sort_by([(name, "ascending") for name in (*_JOB, *order)]).to_pylist():
        of_jobs.setdefault((row["cluster"], row["job"]), []).append(row)
    made = {}
    for key, listed in of_jobs.items():
        try:
            made[key] = make(listed)
        except Exception as error:
            log.error("%s/%s: its rows cannot be used: %s: %s", *key, type(error).__name__, error)
    return made


def _plan_of(rows: list[dict[str, Any]]) -> JobPlan:
    first, steps = PlanRow.of(rows[0]), tuple(_step_of(row) for row in rows if row["status"] == "planned")
    return JobPlan(rows[0]["as_of"].timestamp(), steps, first.forecast_version, first.observations_until_s)


def _step_of(row: dict[str, Any]) -> PlanRow:
    step = PlanRow.of(row)
    if step.apply_at_s is None or step.valid_until_s is None:
        raise ValueError(f"step {step.step_id} has no time")
    return step


def _memories_of(rows: pa.Table) -> dict[JobKey, PolicyMemory]:
    return {
        (row["cluster"], row["job"]): PolicyMemory(row["policy"] or "", row["memory"])
        for row in rows.to_pylist()
        if row["memory"]
    }


def _graph_of(rows: list[dict[str, Any]]) -> JobGraph:
    """Return the graph of the last job id; rows in topological order, by job id."""
    return JobGraph.from_operators(
        [
            Operator(
                row["operator"],
                tuple(row["upstream"] or ()),
                row["max_parallelism"] or MAX_PARALLELISM,
                partitions=row["partitions"],
                is_keyed=BY_KEY in (row["ship_strategies"] or ()),
                slot_sharing_group=row["slot_sharing_group"] or DEFAULT_GROUP,
            )
            for row in rows
            if row["job_id"] == rows[-1]["job_id"]
        ]
    )


def _read_versions(table: LakeTable, now_s: float) -> tuple[dict[JobKey, list[tuple[PlacedOperator, ...]]], float]:
    result: dict[JobKey, dict[Any, list[PlacedOperator]]] = {}
    for row in table.read(_KEYS, *_dates(now_s)).to_pylist():
        one = PlacedOperator(
            row["operator"], row["vertex_id"] or "", row["position"] or 0, tuple(row["upstream"] or ())
        )
        result.setdefault((row["cluster"], row["job"]), {}).setdefault(row["observed_at"], []).append(one)
    versions = {
        job: [tuple(sorted(observed[at], key=lambda one: one.position)) for at in sorted(observed)]
        for job, observed in result.items()
    }
    return versions, float("inf")


def _read_forecasts(table: LakeTable, versions: Sequence[str], now_s: float) -> tuple[LoadForecasts, float]:
    since, until = _dates(now_s)
    rows = table.read(FORECAST_COLUMNS, since, until, is_in("forecast_version", versions))
    return forecasts_of(rows), float("inf")
