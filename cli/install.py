"""``tidewise install``: pools and Spark's connection in an Airflow of your own; what is there stays as it is."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cli.arguments import CommandParser, UsageError
from cli.command import command
from include.orchestration.pools import POOLS
from include.settings import PROJECT, Settings, load_settings, settings_file
from models.scheduling.figures import format_count

LEAST_VERSION = (3, 1)
PROVIDERS = ("apache-airflow-providers-apache-spark", "apache-airflow-providers-standard")
_TIMEOUT_S = 300


class InstallError(Exception):
    """Airflow does not answer, or is none that the DAGs run on."""


class AirflowProgram:
    """Airflow's own command line, which finds its database by the environment."""

    def __init__(self, program: str) -> None:
        self.program = program

    def run(self, *arguments: str) -> str:
        """Return what a command prints.

        Raises:
            InstallError: it fails.
        """
        command = [self.program, *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InstallError(f"{' '.join(command)} does not run: {error}") from None
        if done.returncode != 0:
            raise InstallError(f"`{' '.join(command)}` failed: {_find_reason(done.stderr or done.stdout)}")
        return done.stdout

    def read_list(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the rows of a command that lists; other lines, such as warnings, may come before them."""
        output = self.run(*arguments, "--output", "json")
        for match in re.finditer(r"^\[", output, re.MULTILINE):
            try:
                rows: list[dict[str, Any]] = json.loads(output[match.start() :])
            except ValueError:
                continue
            return rows
        return []  # Airflow prints a sentence where there is nothing


def _find_reason(text: str) -> str:
    """Return what a failed command says: the exception of a traceback, else its last line."""
    lines = text.strip().splitlines() or ["it says nothing"]
    raised = [line for line in lines if re.match(r"[\w.]*\w(Error|Exception|Exit): ", line)]
    reason = (raised or lines)[-1]
    lacks_table = "no such table" in reason or re.search(r'relation "\w+" does not exist', reason)
    return f"{reason}; has `airflow db migrate` run on this database?" if lacks_table else reason


def check_version(text: str) -> str:
    """Return the version that Airflow prints.

    Raises:
        InstallError: the DAGs do not run on it.
    """
    match = re.search(r"^(\d+)\.(\d+)\.\S+$", text.strip(), re.MULTILINE)
    if match is None:
        raise InstallError(f"this is no version of Airflow: {text.strip()[:100]!r}")
    if (int(match[1]), int(match[2])) < LEAST_VERSION:
        raise InstallError(f"Airflow {match[0]} is here, and the DAGs need 3.1 or newer")
    return match[0]


def find_missing_providers(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the providers that the DAGs import and Airflow does not list."""
    present = {str(one.get("package_name")) for one in rows}
    return [name for name in PROVIDERS if name not in present]


def install(airflow: AirflowProgram, settings: Settings, *, is_dry_run: bool) -> list[str]:
    """Create what is missing; returns a line for each thing.

    Raises:
        InstallError: nothing was changed, or a command of Airflow failed.
    """
    version = check_version(airflow.run("version"))
    missing = find_missing_providers(airflow.read_list("providers", "list"))
    if missing:
        raise InstallError(f"Airflow {version} has no {' and no '.join(missing)}: pip install {' '.join(missing)}")
    connection, master = settings.spark.connection_id, settings.spark.master
    present = {str(one["pool"]) for one in airflow.read_list("pools", "list")}
    new = {name: pool for name, pool in POOLS.items() if name not in present}
    is_new = connection not in {str(one["conn_id"]) for one in airflow.read_list("connections", "list")}
    if new and not is_dry_run:
        _import_pools(airflow, new)
    if is_new and not is_dry_run:
        airflow.run("connections", "add", connection, "--conn-json", json.dumps({"conn_type": "spark", "host": master}))
    will = "would be made" if is_dry_run else "made"
    lines = [f"Airflow {version}, with the providers that the DAGs import"]
    lines += [
        f"pool {name}, {format_count(slots, 'slot')}: {will if name in new else 'is there'}"
        for name, (slots, _) in POOLS.items()
    ]
    lines.append(f"connection {connection}: {f'{will}, master {master}' if is_new else 'is there'}")
    return lines


def _import_pools(airflow: AirflowProgram, pools: Mapping[str, tuple[int, str]]) -> None:
    content = {
        name: {"slots": slots, "description": description, "include_deferred": False}
        for name, (slots, description) in pools.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pools.json"
        file.write_text(json.dumps(content))
        airflow.run("pools", "import", str(file))


def list_variables() -> list[str]:
    """Return the variables that Airflow's processes need to find this checkout and its settings."""
    return [
        f"AIRFLOW__CORE__DAGS_FOLDER={PROJECT / 'dags'}   (or a DAG bundle of this repository: docs/deploy.md)",
        f"PYTHONPATH={PROJECT}",
        f"TIDEWISE_SETTINGS={settings_file().resolve()}",
    ]


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--airflow",
        default=shutil.which("airflow"),
        help="Airflow's program (default: the one on PATH)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be made")


def run(options: argparse.Namespace, _: float) -> None:
    """Make what is missing, and print it.

    Raises:
        UsageError: there is no Airflow.
        InstallError: a command of Airflow failed.
    """
    if options.airflow is None:
        raise UsageError("there is no airflow on PATH; name your Airflow's: --airflow /path/to/airflow")
    lines = install(AirflowProgram(options.airflow), load_settings(), is_dry_run=options.dry_run)
    print("\n".join(f"install: {line}" for line in lines))
    print("install: Airflow's scheduler, workers and DAG processor need these variables:")
    print("\n".join(f"  {line}" for line in list_variables()))


main = command("install", __doc__, _add_arguments, run, errors=(InstallError,))
