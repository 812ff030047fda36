"""What is done for each job with its history and what ran, on the executors: a row of Spark in, rows out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pandas as pd
from pyspark.broadcast import Broadcast
from pyspark.sql import DataFrame

from include.domain.graph import GraphError
from include.settings import Settings
from lab.advice.history import History
from lab.backtest.subject import HistoryError, Subject
from lab.stages.inputs.skipped_jobs import BacktestSkip
from lab.stages.inputs.subjects import NoLoadError, build_subject, history_frame, subjects
from lab.stages.inputs.what_ran import Followed, build_history, follow_jobs
from models.bundle.fleet_bundle import BundleError, FleetBundle
from spark_jobs.lake import Lake
from spark_jobs.newest_rows import JOB
from spark_jobs.source_inputs.source_windows import HistoryBins

MOST_TASKS = 400
"""Jobs differ in how long they take: a task for each of them as far as there are not too many."""
ERROR_LENGTH = 500
_SKIPS = {
    BundleError: BacktestSkip.NO_MODEL,
    HistoryError: BacktestSkip.SHORT_HISTORY,
    NoLoadError: BacktestSkip.NO_LOAD,
    GraphError: BacktestSkip.UNKNOWN_OPERATOR,
}


@dataclass(frozen=True, slots=True)
class JobTask:
    """Common inputs of every job; shipped to the executors once.

    Attributes:
        settings: of the run.
        bundle: models of the fleet.
        frame: of the load's history.
        followed: bins in which what ran is followed.
    """

    settings: Settings
    bundle: Broadcast[FleetBundle]
    frame: HistoryBins
    followed: Followed

    def read_subject(self, state: Mapping[Any, Any]) -> Subject:
        """Return a job with its load; raises as :func:`lab.stages.inputs.subjects.build_subject` does."""
        return build_subject(self.settings, self.bundle.value, self.frame, state)

    def read_history(self, subject: Subject, state: Mapping[Any, Any]) -> History:
        """Return what ran of a job."""
        paid = self.settings.cluster(subject.cluster).taskmanager_slots
        return build_history(subject.graph, self.followed, state, paid)


def read_jobs(
    lake: Lake, settings: Settings, bundle: FleetBundle, as_of: datetime, length: timedelta | None = None
) -> tuple[JobTask, DataFrame]:
    """Return the task, and a row per job: operators, sources, and what ran for some time before ``as_of``, if asked."""
    frame = history_frame(settings, as_of)
    followed = Followed.until(frame.as_of_s, length or timedelta())
    task = JobTask(settings, lake.spark.sparkContext.broadcast(bundle), frame, followed)
    jobs = subjects(lake, frame, as_of)
    return task, jobs if length is None else follow_jobs(lake, settings, jobs, followed)


def map_jobs(
    jobs: DataFrame, make_rows: Callable[[dict[Any, Any]], Iterable[dict[str, object]]], schema: str
) -> DataFrame:
    """Return the rows that a function makes of each row of a materialised frame of jobs."""
    columns = [column.split()[0] for column in schema.split(", ")]

    def run(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            rows = [row for state in frame.to_dict("records") for row in make_rows(state)]
            yield pd.DataFrame(rows, columns=columns, dtype=object)

    return jobs.repartitionByRange(max(min(jobs.count(), MOST_TASKS), 1), *JOB).mapInPandas(run, schema)


def name_skip(error: Exception) -> BacktestSkip | None:
    """Return why a job is left out; None for what is no such reason."""
    return next((skip for kind, skip in _SKIPS.items() if isinstance(error, kind)), None)
