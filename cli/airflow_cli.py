"""``tidewise airflow ...``: Airflow's own command line on the embedded Airflow, for a backfill or a trigger.

After ``backfill create`` and ``dags trigger`` it says what nothing else does: which hours a run covers, and why nothing
starts.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cli.airflow_database import AirflowDatabase
from cli.embedded import airflow_environment
from include.settings import SettingsError, load_settings
from include.spark.submission import anchor_paths
from include.utc import format_utc

INGESTING = ("tidewise_hour", "tidewise_ingest")


def find_started_dag(argv: Sequence[str]) -> str | None:
    """Return the DAG of which a command starts runs; None for any other command.

    >>> find_started_dag(["backfill", "create", "--dag-id", "tidewise_hour", "--from-date", "2026-11-20"])
    'tidewise_hour'
    >>> find_started_dag(["dags", "trigger", "tidewise_plan"]), find_started_dag(["dags", "list"])
    ('tidewise_plan', None)
    """
    if list(argv[:2]) == ["backfill", "create"]:
        pairs = [one.partition("=") for one in argv]
        given = [text for name, equals, text in pairs if name == "--dag-id" and equals]
        after = [text for name, text in itertools.pairwise(argv) if name == "--dag-id"]
        return next(iter([*given, *after]), None)
    if list(argv[:2]) == ["dags", "trigger"]:
        return next((one for one in argv[2:] if one.startswith("tidewise_")), None)
    return None


def list_obstacles(database: AirflowDatabase, dag_id: str, now: datetime) -> list[str]:
    """Return why runs of a DAG stay queued, each with what to do."""
    result = []
    if database.read_paused().get(dag_id, True):
        result.append(
            f"{dag_id} is paused: its runs stay queued until it is switched on, which also starts its own schedule: "
            f"tidewise airflow dags unpause {dag_id}, or its switch on Airflow's page"
        )
    if not database.has_scheduler(now):
        result.append("no scheduler runs: runs stay queued until make ui runs")
    return result


def main(argv: Sequence[str]) -> int:
    """Run Airflow's command line; returns its exit code."""
    try:
        environment = airflow_environment(anchor_paths(load_settings()))
    except SettingsError as error:
        print(f"airflow: {error}", file=sys.stderr)
        return 1
    database = AirflowDatabase(Path(environment["AIRFLOW_HOME"]) / "airflow.db")
    dag_id = find_started_dag(argv)
    known = database.read_backfills(dag_id) if dag_id else {}
    airflow = Path(sys.executable).with_name("airflow")
    code = subprocess.run([str(airflow), *argv], env=environment, check=False).returncode
    if dag_id and code == 0 and "--dry-run" not in argv:
        for run_id, hours in database.read_backfills(dag_id).items() if dag_id in INGESTING else ():
            if run_id not in known:
                span = f"{format_utc(hours.start)} to {format_utc(hours.end)}"
                print(f"airflow: run {run_id} ingests {span}", file=sys.stderr)
        for why in list_obstacles(database, dag_id, datetime.now(UTC)):
            print(f"airflow: {why}", file=sys.stderr)
    return code
