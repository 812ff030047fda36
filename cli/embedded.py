"""The embedded Airflow: everything it keeps lies below the out directory, and it listens on this machine only."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from include.atomic_write import temporary_beside
from include.place import local_beside
from include.settings import PROJECT, SETTINGS_FILE_VARIABLE, Settings, settings_file

LOOPBACK = "127.0.0.1"
# SQLite has one writer at a time: while Airflow's parts start together, five seconds (the default) are not enough.
DATABASE_WAITS_S = 120


def airflow_environment(settings: Settings, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables for Airflow's processes; what the environment sets already about Spark's connection wins."""
    home = PROJECT / local_beside(settings.paths.out) / "airflow"
    connection = f"AIRFLOW_CONN_{settings.spark.connection_id.upper()}"
    result = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}?timeout={DATABASE_WAITS_S}",
        "AIRFLOW__API__HOST": LOOPBACK,
        # Without these every process makes up its own, and the API server refuses what the workers report.
        "AIRFLOW__API_AUTH__JWT_SECRET": _secret(home / "jwt_secret"),
        "AIRFLOW__API__SECRET_KEY": _secret(home / "api_secret"),
        # Airflow keeps its own absolute paths in airflow.cfg: those of the checkout that this one was copied from.
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "page" / "airflow_plugin"),
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        "AIRFLOW__LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": str(home / "logs" / "dag_processor"),
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        # JSON, because the URI spark://local[*] would silently become a YARN master.
        connection: environment.get(connection, json.dumps({"conn_type": "spark", "host": settings.spark.master})),
        # Airflow puts only the DAG folder on sys.path. The Spark stages do not need this: they get a zip.
        "PYTHONPATH": os.pathsep.join([str(PROJECT), str(PROJECT / "cli" / "airflow_config")]),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', os.defpath)}",
        # Spark's driver would otherwise listen on the machine's outer address.
        **({"SPARK_LOCAL_IP": LOOPBACK} if settings.spark.master.startswith("local") else {}),
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    file = settings_file()
    if file.is_file():
        result[SETTINGS_FILE_VARIABLE] = str(file.resolve())
    return dict(environment) | result


def _secret(path: Path) -> str:
    """Return the secret that a file holds; the first call makes it, readable by this user alone."""
    with contextlib.suppress(FileExistsError), temporary_beside(path) as temporary:
        temporary.touch(mode=0o600)
        temporary.write_text(secrets.token_urlsafe(48))
        os.link(temporary, path)  # unlike a rename, never replaces the secret of a process that was faster
    return path.read_text()


def below(out: Path) -> dict[str, str]:
    """Return the settings variables that put everything a run makes below one directory."""
    out = out.resolve()
    own = PROJECT / local_beside(str(out))  # what is no object
    return {
        "TIDEWISE__PATHS__OUT": str(out),
        "TIDEWISE__PATHS__LAKE": str(out / "lake"),
        "TIDEWISE__PATHS__RAW": str(out / "raw"),
        "TIDEWISE__SPARK__PACKAGE_ZIP": str(own / "tidewise.zip"),
        "TIDEWISE__MLFLOW__TRACKING_URI": f"sqlite:///{own / 'mlflow.db'}",
        "TIDEWISE__MLFLOW__ARTIFACT_ROOT": str(out / "mlartifacts"),
    }
