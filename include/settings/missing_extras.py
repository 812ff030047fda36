"""Settings that need packages which are not installed here, by key and with the command that installs them."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from include.extras import EXTRAS, lacks_extra
from include.settings.tree import Settings, s3_keys
from include.spark.jars import missing_s3_jars

PROJECT = Path(__file__).resolve().parents[2]
# What SQLAlchemy takes when a database's URI names no driver; for postgresql from 2.1 on.
_DRIVERS = {"postgresql": "psycopg", "mysql": "MySQLdb", "mssql": "pyodbc"}


def missing_extras(settings: Settings) -> list[str]:
    """Return a line for each key whose value cannot be used with what is installed.

    Where MLflow itself is not installed, as beside an Airflow of a team's own, nothing reads models: none is missing.
    """
    if find_spec("mlflow") is None:
        return []
    result = []
    database, _, named = settings.mlflow.tracking_uri.partition(":")[0].partition("+")
    driver = named or _DRIVERS.get(database)
    if driver in EXTRAS["postgres"] and lacks_extra("postgres"):
        result.append("mlflow.tracking_uri: the driver of postgresql is not installed; run `make setup EXTRA=postgres`")
    elif driver is not None and find_spec(driver) is None:
        result.append(
            f"mlflow.tracking_uri: the driver {driver} of {database} is not installed; install it into .venv, or use"
            " postgresql with `make setup EXTRA=postgres`"
        )
    return [*result, *_missing_for_s3(settings)]


def _missing_for_s3(settings: Settings) -> list[str]:
    """Return a line for each key on S3; a driver that spark-submit started has its jars from there."""
    result, keys = [], s3_keys(settings)
    if "mlflow.artifact_root" in keys and lacks_extra("s3"):
        result.append("mlflow.artifact_root: boto3, which writes to S3, is not installed; run `make setup EXTRA=s3`")
    read_by_spark = [key for key in keys if key != "mlflow.artifact_root"]
    if not read_by_spark or "SPARK_ENV_LOADED" in os.environ or find_spec("pyspark") is None:
        return result
    folder = PROJECT / settings.spark.jars_dir
    if lacking := missing_s3_jars(folder):
        why = f"{folder} lacks {', '.join(lacking)}, with which Spark reads S3; run `make setup EXTRA=s3`"
        result += [f"{key}: {why}" for key in read_by_spark]
    return result
