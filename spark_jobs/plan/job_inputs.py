"""What a plan reads of its jobs, a part of them at a time; Spark plans them.

Where Spark opened, planned, shuffled and committed every table, that took longer than the plans themselves:
docs/adr/0040-one-way-through-each-stage.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pyarrow as pa

from include import tables
from include.lake_table import LakeTable
from include.policy_catalogue import Decides, names_where
from include.stage_names import LEARN, PROFILING
from include.tables import Table
from spark_jobs.by_job import Job, split_columns
from spark_jobs.few_rows import read_newest_rows
from spark_jobs.lake import Lake
from spark_jobs.newest_rows import LOOKBACK
from spark_jobs.plan.job_plan import PlanTask
from spark_jobs.plan_inputs.job_state import JobState
from spark_jobs.plan_inputs.newest_of_jobs import (
    list_graphs,
    list_job_states,
    read_newest_forecasts,
    read_newest_memories,
)
from spark_jobs.plan_inputs.past_loads import read_past_loads
from spark_jobs.plan_inputs.windows import WINDOW, any_observes
from spark_jobs.plan_inputs.windows_of_jobs import read_clusters_past, read_observed_until, read_recent_windows
from spark_jobs.source_inputs.renames import FormerVersions, OperatorName, versions_of

_HELD_BYTES = 80 * 2**20
"""Of files with the windows that policies look at, those of a part of the jobs: 1,000 jobs with 8 operators and windows
of one minute have 37 MiB of two hours."""
Memory = dict[str, str | None]


class JobInputs:
    """The tables of one plan, at their Delta versions."""

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
        self, former: FormerVersions, current: Mapping[OperatorName, str | None]
    ) -> Iterator[list[JobState]]:
        """Yield the states of the jobs of each part, in order."""
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
            histories = self._read_histories(own, new.intersection(own), current)
            yield [
                JobState(
                    *job,
                    versions=versions_of(former.get(job, ())),
                    observed_after_s=after.get(job[0]),
                    **{name: value for of_jobs in (*known, histories) for name, value in of_jobs.get(job, {}).items()},
                )
                for job in own
            ]

    def _read_histories(
        self, jobs: list[Job], new: Collection[Job], current: Mapping[OperatorName, str | None]
    ) -> dict[Job, dict[str, Any]]:
        """Return what jobs have much of: forecasts, windows and, of new ones, past loads."""
        as_of, windows = self._task.as_of, self._table(tables.OBSERVATIONS)
        with ThreadPoolExecutor() as pool:
            made = pool.submit(read_newest_forecasts, self._table(tables.FORECASTS), as_of, jobs)
            columns = {}
            if any_observes(self._options):
                observing = {job for job in jobs if self._observes(job)}
                observed = timedelta(hours=self._options.observed_h)
                recent = read_recent_windows(windows, observed, as_of, observing, current)
                columns["windows"] = split_columns(recent, WINDOW, jobs)
            if new:
                columns["past_loads"] = read_past_loads(windows, as_of, new, jobs, current)
            forecasts = made.result()
        return {
            job: {**forecasts[at], **{name: of_jobs[at] for name, of_jobs in columns.items()}}
            for at, job in enumerate(jobs)
        }

    def _table(self, table: Table) -> LakeTable:
        return self._lake.few(table, self._version(table))

    def _read_newest(self, table: Table) -> pa.Table:
        as_of = self._task.as_of
        return read_newest_rows(
            self._lake, table, as_of - LOOKBACK, as_of, order=("date", "hour"), version=self._version(table)
        )
