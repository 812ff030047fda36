"""What a plan reads of its jobs, a part of them at a time; Spark plans them.

Where Spark opened, planned, shuffled and committed every table, that took longer than the plans themselves:
docs/adr/0040-one-way-through-each-stage.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pyarrow as pa

from include import tables
from include.lake_table import LakeTable
from include.policy_catalogue import Decides, names_where
from include.stage_names import LEARN, PROFILING
from include.tables import Table
from spark_jobs.by_job import Job, group_structs
from spark_jobs.few_rows import read_newest_rows
from spark_jobs.lake import Lake
from spark_jobs.newest_rows import JOB, LOOKBACK
from spark_jobs.plan.job_plan import PlanTask
from spark_jobs.plan_inputs.newest_of_jobs import (
    list_graphs,
    list_job_states,
    read_newest_forecasts,
    read_newest_memories,
)
from spark_jobs.plan_inputs.past_loads import read_past_loads
from spark_jobs.plan_inputs.windows import WINDOW, any_observes
from spark_jobs.plan_inputs.windows_of_jobs import read_clusters_past, read_observed_until, read_recent_windows
from spark_jobs.source_inputs.renames import OperatorName

_HELD_BYTES = 80 * 2**20
"""Of files with the windows that policies look at, those of a part of the jobs: 1,000 jobs with 8 operators and windows
of one minute have 37 MiB of two hours."""
Memory = dict[str, str | None]
_STATE = {
    "job_id": pa.string(),
    "operators": pa.string(),
    "seen_at_s": pa.int64(),
    "observed_until_s": pa.int64(),
    "state": pa.string(),
    "job_type": pa.string(),
    "ended_at_s": pa.int64(),
    "is_busy_measured": pa.bool_(),
    "unseen_sources": pa.string(),
    "observed_after_s": pa.int64(),
    "versions": pa.string(),
    "memory": pa.string(),
    "memory_policy": pa.string(),
}


class JobInputs:
    """The tables of one plan, at their versions.

    Args:
        lake: the tables.
        versions: table -> Delta version to read.
        task: of the plan.
    """

    def __init__(self, lake: Lake, versions: Mapping[str, int], task: PlanTask) -> None:
        self._lake, self._versions, self._task = lake, versions, task
        self._options = task.settings.planner
        self._observing = names_where(self._options.policies_in_use, observes=True)

    def _count_parts(self) -> int:
        as_of = self._task.as_of
        since = as_of - timedelta(hours=max(1.0, self._options.observed_h))
        windows = self._table(tables.OBSERVATIONS)
        size = windows.count_bytes(since.replace(minute=0, second=0, microsecond=0), as_of)
        return max(1, -(-size // _HELD_BYTES))

    def _observes(self, job: Job) -> bool:
        return self._options.policy_of(*job) in self._observing

    def _version(self, table: Table) -> int | None:
        return self._versions.get(table.name)

    def read_states(
        self, versions: Mapping[Job, str], current: Mapping[OperatorName, str | None]
    ) -> Iterator[pa.Table]:
        """Yield one row per job, ordered, with the columns of :class:`spark_jobs.plan_inputs.job_state.JobState`.

        Args:
            versions: graphs of the jobs whose operators have changed, as JSON.
            current: see :func:`spark_jobs.source_inputs.renames.current_names`.
        """
        options, as_of = self._options, self._task.as_of
        looks, windows = any_observes(options), self._table(tables.OBSERVATIONS)
        also = (LEARN, PROFILING)  # as of the same moment they come before the plan
        with ThreadPoolExecutor() as pool:  # files are read and decoded without Python's lock
            until, memories = pool.submit(read_observed_until, windows, as_of), pool.submit(dict[Job, Memory])
            if looks:
                memories = pool.submit(read_newest_memories, self._lake.few(tables.POLICY_MEMORY), as_of, also)
            after = read_clusters_past(windows, as_of + timedelta(hours=options.horizon_h))
            graphs = list_graphs(self._read_newest(tables.JOB_GRAPHS))
            states = list_job_states(self._read_newest(tables.JOBS))
        remembered = memories.result()
        known = [graphs, states, until.result(), remembered]
        jobs = sorted({*graphs, *states, *until.result()})
        replanning = names_where(options.policies_in_use, decides=Decides.REPLANS)
        knowing = {job for job, row in remembered.items() if row["memory_policy"] in replanning}
        new = {job for job in jobs if job not in knowing and options.policy_of(*job) in replanning} if looks else set()
        count = self._count_parts()
        for part in range(count):
            own = jobs[part * len(jobs) // count : (part + 1) * len(jobs) // count]
            columns = {name: pa.array([job[at] for job in own], pa.string()) for at, name in enumerate(JOB)}
            columns |= _list_columns(own, known, versions, after) | self._read_part(own, current)
            if new:
                columns["past_loads"] = read_past_loads(windows, as_of, new.intersection(own), own, current)
            yield pa.table(columns)

    def _read_part(self, jobs: list[Job], current: Mapping[OperatorName, str | None]) -> dict[str, pa.Array]:
        """Return the columns of what jobs have much of: forecasts and windows."""
        as_of, observing = self._task.as_of, {job for job in jobs if self._observes(job)}
        with ThreadPoolExecutor() as pool:
            made = pool.submit(read_newest_forecasts, self._table(tables.FORECASTS), as_of, jobs)
            columns = {}
            if any_observes(self._options):
                observed = timedelta(hours=self._options.observed_h)
                recent = read_recent_windows(self._table(tables.OBSERVATIONS), observed, as_of, observing, current)
                columns["windows"] = group_structs(recent, WINDOW, jobs)
            forecasts = made.result()
        return columns | {name: forecasts[name] for name in forecasts.column_names}

    def _table(self, table: Table) -> LakeTable:
        return self._lake.few(table, self._version(table))

    def _read_newest(self, table: Table) -> pa.Table:
        as_of = self._task.as_of
        return read_newest_rows(
            self._lake, table, as_of - LOOKBACK, as_of, order=("date", "hour"), version=self._version(table)
        )


def _list_columns(
    jobs: list[Job],
    parts: Sequence[Mapping[Job, Mapping[str, Any]]],
    versions: Mapping[Job, str],
    after: Mapping[str, int],
) -> dict[str, pa.Array]:
    """Return the columns of plain values from what is known of jobs and, at last, of clusters."""
    rows = [{name: value for part in parts for name, value in part.get(job, {}).items()} for job in jobs]
    for row, job in zip(rows, jobs, strict=True):
        row |= {"versions": versions.get(job), "observed_after_s": after.get(job[0])}
    return {name: pa.array([row.get(name) for row in rows], kind) for name, kind in _STATE.items()}
