"""Fixtures of the Spark tests: one session for all of them, a lake and settings of its own for each."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include.settings import Settings
from spark_jobs.lake import Lake
from spark_jobs.model_database import ensure_database
from spark_jobs.session import start_session
from tests.spark.ingested_twice import IngestedTwice, ingest_twice
from tests.spark.lake_settings import REPOSITORY, prepared_settings, settings_below
from tests.spark.situations import Situations, ingest_situations


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on local[2] with Delta, shared by every Spark test."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Executors' Python workers import the project as the tests do.
    paths = [str(REPOSITORY), str(REPOSITORY / "tests" / "support"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    root = tmp_path_factory.mktemp("session")
    session = start_session(settings_below(root), "tests")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def empty_model_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MLflow's SQLite file with its schema, which dozens of migrations make."""
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    ensure_database(f"sqlite:///{path}")
    return path


@pytest.fixture
def settings(tmp_path: Path, empty_model_store: Path) -> Settings:
    """Settings on ``tmp_path``."""
    return prepared_settings(tmp_path, empty_model_store)


@pytest.fixture(scope="module")
def shared_settings(tmp_path_factory: pytest.TempPathFactory, empty_model_store: Path) -> Settings:
    """Settings of the lake that all tests of a file share."""
    return prepared_settings(tmp_path_factory.mktemp("shared"), empty_model_store)


@pytest.fixture(scope="module")
def shared_lake(spark: SparkSession, shared_settings: Settings) -> Lake:
    """A lake that all tests of a file share, empty at first."""
    return Lake(spark, shared_settings.paths.lake)


@pytest.fixture(scope="session")
def situations(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, empty_model_store: Path) -> Situations:
    """One ingestion for the tests of several files."""
    return ingest_situations(spark, prepared_settings(tmp_path_factory.mktemp("situations"), empty_model_store))


@pytest.fixture(scope="session")
def twice(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, empty_model_store: Path) -> IngestedTwice:
    """Two ingestions for the tests of several files."""
    return ingest_twice(spark, prepared_settings(tmp_path_factory.mktemp("twice"), empty_model_store))


@pytest.fixture
def lake(spark: SparkSession, settings: Settings) -> Lake:
    """An empty lake on ``tmp_path``."""
    return Lake(spark, settings.paths.lake)
