"""Checks of Airflow: its database, and that the DAG files import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.doctor.airflow_probe import MARK
from cli.doctor.findings import Finding, error, list_names, ok
from cli.embedded import airflow_environment
from include.place import local_beside
from include.settings import PROJECT, Settings

PART = "Airflow"
TIMEOUT_S = 120.0


def check_airflow(settings: Settings, environment: Mapping[str, str] = os.environ) -> list[Finding]:
    """Return what Airflow finds, the one of ``AIRFLOW_HOME`` or else the embedded one."""
    is_own = "AIRFLOW_HOME" in environment
    home = Path(environment["AIRFLOW_HOME"]) if is_own else PROJECT / local_beside(settings.paths.out) / "airflow"
    # Asked for its database, Airflow would make an empty one.
    is_unmade = not is_own and not (home / "airflow.db").exists()
    variables = dict(environment) | {"PYTHONPATH": str(PROJECT)} if is_own else airflow_environment(settings)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cli.doctor.airflow_probe", *(["--no-database"] if is_unmade else [])],
            cwd=PROJECT,
            env=variables,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [
            error(PART, "start", f"no answer within {TIMEOUT_S:g} s", "does its database answer? See airflow db check")
        ]
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if not lines:
        last = next(
            (line for line in reversed(done.stderr.splitlines()) if line.strip()), f"exit code {done.returncode}"
        )
        return [error(PART, "start", f"it does not start: {last[:300]}", "run `make setup`, then `airflow info`")]
    result = json.loads(lines[-1].removeprefix(MARK))
    return [_check_database(result, home), _check_dags(result), *_check_installed(result), *_check_submission(result)]


def _check_installed(result: Mapping[str, Any]) -> list[Finding]:
    """Return what a task would wait for in vain; nothing where no database says it."""
    if result["database"] != "":
        return []
    if result["missing"]:
        remedy = "run `tidewise install`, which makes what is missing and changes nothing else"
        return [error(PART, "pools", f"there is no {' and no '.join(result['missing'])}", remedy)]
    return [ok(PART, "pools", "the pools and Spark's connection are there")]


def _check_submission(result: Mapping[str, Any]) -> list[Finding]:
    """Return whether stages can be submitted through the connection; nothing where there is none."""
    submission = result["submission"]
    if submission is None:
        return []
    if submission["refusal"] is not None:
        return [error(PART, "submission", submission["refusal"], "see docs/spark_services.md")]
    return [ok(PART, "submission", f"stages go through a connection of type {submission['type']}")]


def _check_database(result: Mapping[str, Any], home: Path) -> Finding:
    if result["database"] is None:
        return ok(PART, "database", f"{home / 'airflow.db'} is made by `make ui` or `make run`")
    if not result["database"]:
        return ok(PART, "database", f"the one of {home} answers, its tables are of this version")
    remedy = "run `airflow db migrate`; is AIRFLOW__DATABASE__SQL_ALCHEMY_CONN right?"
    return error(PART, "database", str(result["database"]), remedy)


def _check_dags(result: Mapping[str, Any]) -> Finding:
    ours = [dag for dag in result["dags"] if dag.startswith("tidewise_")]
    if result["errors"]:
        file, why = next(iter(result["errors"].items()))
        remedy = "Airflow's Python needs this project's packages and its folder on PYTHONPATH"
        return error(PART, "DAGs", f"{len(result['errors'])} DAG files do not import: {Path(file).name}: {why}", remedy)
    if not ours:
        return error(PART, "DAGs", "no DAG of Tidewise is found", f"set core.dags_folder to {PROJECT / 'dags'}")
    return ok(PART, "DAGs", f"{len(ours)} import: {list_names(ours, 3)}")
