"""Fixtures of the Spark tests: one session for all of them, a lake and settings of its own for each."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include.settings import SETTINGS_FILE_VARIABLE, Cluster, Mlflow, Paths, Settings, Spark
from spark_jobs.lake import Lake
from spark_jobs.session import start_session

REPOSITORY = Path(__file__).resolve().parents[2]


def settings_below(root: Path) -> Settings:
    """Return settings whose every path lies below ``root``; clusters ``c5m`` (5-minute windows) and ``c15s``."""
    return Settings(
        paths=Paths(lake=str(root / "lake"), raw=str(root / "raw"), out=str(root / "out")),
        spark=Spark(
            master="local[2]",
            driver_memory="2g",
            shuffle_partitions=2,
            jars_dir=str(REPOSITORY / ".cache" / "jars"),
        ),
        mlflow=Mlflow(tracking_uri=f"sqlite:///{root}/mlflow.db", artifact_root=str(root / "mlartifacts")),
        clusters={"c5m": Cluster(window_s=300), "c15s": Cluster(window_s=15, slots_max=8)},
    )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on local[2] with Delta, shared by every Spark test."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Executors' Python workers import the project as the tests do.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    root = tmp_path_factory.mktemp("session")
    session = start_session(settings_below(root), "tests")
    yield session
    session.stop()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings on ``tmp_path``; the repository's own ``tidewise.toml`` does not reach into tests."""
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(tmp_path / "none.toml"))
    return settings_below(tmp_path)


@pytest.fixture
def lake(spark: SparkSession, settings: Settings) -> Lake:
    """An empty lake on ``tmp_path``."""
    return Lake(spark, settings.paths.lake)
