"""The servers of a team: PostgreSQL, Redis, a store that speaks S3, Spark, MLflow, and Airflow without workers."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from airflow_parts import PROGRAM, AirflowParts, describe_airflow
from airflow_runs import AirflowRuns
from celery_workers import CeleryWorker
from cluster_settings import ARTIFACTS, places, rules
from local_postgres import local_postgres
from local_redis import local_redis
from local_s3 import KEYS, s3_server
from mlflow_server import mlflow_server
from standalone_spark import HOST, standalone_spark
from worker_machine import make_machine

RUN_S = 1200.0
"""Within which a run ends, also where a worker was lost."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Everything that runs, and the settings under which.

    Attributes:
        folder: of the machines.
        settings: text of every machine's file.
        airflow: its parts.
        runs: of its DAGs.
    """

    folder: Path
    settings: str
    airflow: AirflowParts
    runs: AirflowRuns

    def worker(self, name: str) -> CeleryWorker:
        """Return a worker on a new machine."""
        return CeleryWorker(self.airflow, make_machine(self.folder / name, self.settings), name)

    def describe(self, workers: Sequence[CeleryWorker]) -> str:
        """Return the states of all runs, and what the workers logged last."""
        states = self.runs.read_states()
        return "\n".join([str(states), *(one.machine.read_logs("")[-4000:] for one in workers)])

    def end_well(self, dag: str, workers: Sequence[CeleryWorker]) -> None:
        """Wait until a run has ended.

        Raises:
            AssertionError: it has failed, or does not end.
        """
        assert self.runs.wait_for(dag, RUN_S) == "success", self.describe(workers)


@contextmanager
def running_cluster(folder: Path, flink: str, date: str, patch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Run every server, all but the workers and the controller.

    Args:
        folder: for all of it.
        flink: address of a cluster of Flink.
        date: logical date of the runs.
        patch: takes the variables by which this program reads the lake.
    """
    for name, value in {**KEYS, "SPARK_LOCAL_IP": HOST}.items():  # executors have their keys from where they run
        patch.setenv(name, value)
    with ExitStack() as stack:
        postgres = stack.enter_context(local_postgres("airflow", "mlflow"))
        redis = stack.enter_context(local_redis(folder / "redis"))
        s3 = stack.enter_context(s3_server())
        patch.setenv("AWS_ENDPOINT_URL", s3)
        patch.setenv("AWS_REGION", "us-east-1")
        master = stack.enter_context(standalone_spark(folder / "spark", workers=2, memory="1g"))
        database = f"postgresql://{postgres}/mlflow"
        mlflow = stack.enter_context(mlflow_server(folder / "mlflow", database, ARTIFACTS))
        settings = rules(flink) + places(mlflow=mlflow, s3=s3, master=master)
        airflow = describe_airflow(make_machine(folder / "main", settings), postgres, redis, KEYS)
        airflow.run(PROGRAM, "db", "migrate")
        made = airflow.run(sys.executable, "-m", "cli.console", "install", "--airflow", PROGRAM)
        assert "connection spark_default: made" in made
        stack.enter_context(airflow.running())
        yield Cluster(folder, settings, airflow, AirflowRuns(airflow, postgres, date))
