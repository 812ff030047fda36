"""A plan of few jobs: what it reads and writes goes through the driver, and Spark plans the jobs alone.

Where Spark opens, plans, shuffles and commits every table, that takes longer than the plans themselves. The rows are
those of :mod:`.build_plan` with frames, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pyarrow as pa

from include import tables
from include.lake_table import LakeTable
from include.policy_catalogue import Decides, names_where
from include.stage_names import LEARN, PROFILING
from include.tables import Table
from spark_jobs.few_rows import read_newest_rows
from spark_jobs.lake import Lake, rows_of
from spark_jobs.newest_rows import JOB, LOOKBACK
from spark_jobs.plan.job_plan import PlanTask
from spark_jobs.plan_inputs.by_job import Job, group_structs, list_keys
from spark_jobs.plan_inputs.driver_newest import (
    list_graphs,
    list_job_states,
    read_newest_forecasts,
    read_newest_memories,
)
from spark_jobs.plan_inputs.driver_windows import read_clusters_past, read_observed_until, read_recent_windows
from spark_jobs.plan_inputs.past_loads import any_replans, past_loads
from spark_jobs.plan_inputs.windows import WINDOW, any_observes
from spark_jobs.source_inputs.renames import OperatorName, follow_renames, renames_frame

HELD_BYTES = 80 * 2**20
"""Of files with the windows that policies look at; of more the plan is left to Spark. 1,000 jobs with 8 operators and
windows of one minute have 37 MiB of two hours."""
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


class FewJobs:
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

    def are_few(self) -> bool:
        """Whether what policies look at fits into the driver."""
        as_of = self._task.as_of
        since = as_of - timedelta(hours=max(1.0, self._options.observed_h))
        windows = self._table(tables.OBSERVATIONS)
        return windows.count_bytes(since.replace(minute=0, second=0, microsecond=0), as_of) <= HELD_BYTES

    def _observes(self, job: Job) -> bool:
        return self._options.policy_of(*job) in self._observing

    def _version(self, table: Table) -> int | None:
        return self._versions.get(table.name)

    def read_states(self, versions: Mapping[Job, str], current: Mapping[OperatorName, str | None]) -> pa.Table:
        """Return one row per job, ordered, with the columns of :class:`spark_jobs.plan_inputs.job_state.JobState`.

        Args:
            versions: graphs of the jobs whose operators have changed, as JSON.
            current: see :func:`spark_jobs.source_inputs.renames.current_names`.
        """
        options, as_of = self._options, self._task.as_of
        looks, windows = any_observes(options), self._table(tables.OBSERVATIONS)
        horizon_end, observed = as_of + timedelta(hours=options.horizon_h), timedelta(hours=options.observed_h)
        also = (LEARN, PROFILING)  # as of the same moment they come before the plan
        with ThreadPoolExecutor() as pool:  # files are read and decoded without Python's lock
            until = pool.submit(read_observed_until, windows, as_of)
            recent, memories = pool.submit(pa.table, {}), pool.submit(dict[Job, Memory])
            if looks:
                recent = pool.submit(read_recent_windows, windows, observed, as_of, self._observes, current)
                memories = pool.submit(read_newest_memories, self._lake.few(tables.POLICY_MEMORY), as_of, also)
            after = read_clusters_past(windows, horizon_end)
            graphs = list_graphs(self._read_newest(tables.JOB_GRAPHS))
            states = list_job_states(self._read_newest(tables.JOBS))
            jobs = sorted({*graphs, *states, *until.result()})
            forecasts = read_newest_forecasts(self._table(tables.FORECASTS), as_of, jobs)
            remembered = memories.result()
            columns = {name: pa.array([job[at] for job in jobs], pa.string()) for at, name in enumerate(JOB)}
            columns |= _list_columns(jobs, [graphs, states, until.result(), remembered], versions, after)
            columns |= {name: forecasts[name] for name in forecasts.column_names}
            if looks:
                columns["windows"] = group_structs(recent.result(), WINDOW, jobs)
        if looks and any_replans(options):
            columns |= self._read_past_loads(jobs, remembered, current)
        return pa.table(columns)

    def _table(self, table: Table) -> LakeTable:
        return self._lake.few(table, self._version(table))

    def _read_newest(self, table: Table) -> pa.Table:
        as_of = self._task.as_of
        return read_newest_rows(
            self._lake, table, as_of - LOOKBACK, as_of, order=("date", "hour"), version=self._version(table)
        )

    def _read_past_loads(
        self,
        jobs: list[Job],
        remembered: Mapping[Job, Mapping[str, str | None]],
        current: Mapping[OperatorName, str | None],
    ) -> dict[str, pa.Array]:
        """Return the column of :func:`.past_loads.past_loads`; nothing, and no window is read, where no job is new."""
        lake, options = self._lake, self._options
        replanning = names_where(options.policies_in_use, decides=Decides.REPLANS)
        known = [job for job, row in remembered.items() if row["memory_policy"] in replanning]
        new = [job for job in jobs if options.policy_of(*job) in replanning]
        if not set(new) - set(known):
            return {}
        columns = dict.fromkeys(("cluster", "job", "memory_policy"), "STRING")
        rows = [dict(zip(columns, (*job, remembered[job]["memory_policy"]), strict=True)) for job in known]
        observations = lake.read(tables.OBSERVATIONS, self._version(tables.OBSERVATIONS))
        followed = follow_renames(observations, renames_frame(lake, current))
        made = past_loads(followed, rows_of(lake.spark, columns, rows), options, self._task.as_of).toArrow()
        place = {job: at for at, job in enumerate(list_keys(made))}
        order = pa.array([place.get(job) for job in jobs], pa.int64())
        return {"past_loads": made["past_loads"].combine_chunks().take(order)}


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
