"""What the windows of each job tell, learnt on the executors in one pass over the observations."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame

from include.settings import Cluster, Settings
from include.short_names import shorten_name
from models.arrays import Floats
from models.bundle.fleet_bundle import JobKey
from models.training.job_tests import measure_sustained
from models.training.job_windows import KnownOperator, TrainingHistory
from models.training.train_job import LearnedJob, learn_job
from spark_jobs.packed_objects import PACKED, collect_objects, pack
from spark_jobs.train.day_windows import JOB, unpack_windows
from spark_jobs.train.job_tables import read_windows
from spark_jobs.train.training_events import index_jobs

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LearnTask:
    """What every job's learning needs; shipped to the executors once.

    Attributes:
        settings: of the run.
        as_of_s: end of the windows, epoch seconds.
        since_s: what a trial predicts begins then; None for no trial.
        operators: of the latest graph of each job.
        spans: (n, 2) of each job, the times after its events over which its capacity is measured, epoch seconds.
    """

    settings: Settings
    as_of_s: float
    since_s: float | None
    operators: Mapping[JobKey, tuple[KnownOperator, ...]]
    spans: Mapping[JobKey, Floats]

    def learn(self, job: JobKey, table: pa.Table) -> tuple[LearnedJob, Floats]:
        """Return what the windows of one job tell, and the (n,) capacity that was measured after its events."""
        cluster = self.settings.clusters.get(job[0], Cluster())
        operators = self.operators.get(job, ())
        history = TrainingHistory(job, read_windows(table, operators), operators, cluster.slots_max)
        spans = self.spans.get(job, np.zeros((0, 2)))
        learnt = learn_job(history, self.settings.training, self.as_of_s, self.since_s)
        return learnt, measure_sustained(history.windows, spans[:, 0], spans[:, 1])


def learn_jobs(observations: DataFrame, task: LearnTask, events: pd.DataFrame) -> tuple[list[LearnedJob], pd.DataFrame]:
    """Return what is learnt of each job with windows, in the order of their names, and the events.

    A job that fails is named in the log and left out. Events come back with ``capacity_after_per_s``, NaN where no
    window tells it.
    """
    shared = observations.sparkSession.sparkContext.broadcast(task)

    def learn(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        cluster, job = (str(part.as_py()) for part in key)
        try:
            result = shared.value.learn((cluster, job), unpack_windows(table["windows"].to_pylist()))
        except Exception as error:  # one job spoils no other
            log.error("%s/%s is left out: %s: %s", *map(shorten_name, (cluster, job)), type(error).__name__, error)
            return pa.Table.from_batches([pack([])])
        return pa.Table.from_batches([pack([result])])

    made = observations.select(*JOB, "windows").groupBy(*JOB).applyInArrow(learn, f"{PACKED} BINARY")
    results = sorted(collect_objects(made), key=lambda one: one[0].facts.job)
    sustained = {learnt.facts.job: per_s for learnt, per_s in results}
    return [learnt for learnt, _ in results], _add_capacity(events, sustained)


def _add_capacity(events: pd.DataFrame, sustained: Mapping[JobKey, Floats]) -> pd.DataFrame:
    result = np.full(len(events), np.nan)
    for job, rows in index_jobs(events).items():
        result[rows] = sustained.get(job, np.nan)
    return events.assign(capacity_after_per_s=result)
