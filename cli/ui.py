"""``make ui``: Airflow and MLflow on this machine, with the tables and runs of ``make run`` behind them.

Airflow's parts are started one by one and not by ``airflow standalone``, whose log servers listen on every interface.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from cli.airflow_database import AirflowDatabase
from cli.arguments import CommandParser, UsageError, whole_number
from cli.command import command
from cli.embedded import LOOPBACK, airflow_environment
from cli.setup_steps import never_silent
from include.place import local_beside
from include.readers import close_out
from include.settings import PROJECT, load_settings
from include.spark.submission import anchor_paths
from page import PREFIX

START_WITHIN_S = 180.0
SAY_EVERY_S = 10.0
ALL = "all"
STOP_WITHIN_S = 20.0


class UiError(RuntimeError):
    """The interfaces cannot be shown; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Service:
    """One process: its name, which also names its log, and its argv."""

    name: str
    command: list[str]


def services(airflow_port: int, mlflow_port: int) -> list[Service]:
    """Return what has to run, in the order in which it is started; where MLflow's runs are is in the environment."""
    tools = Path(sys.executable).parent
    airflow, mlflow = str(tools / "airflow"), str(tools / "mlflow")
    return [
        Service("api-server", [airflow, "api-server", "--host", LOOPBACK, "--port", str(airflow_port)]),
        # Logs are read from the disk of this machine: no log server is needed.
        Service("scheduler", [airflow, "scheduler", "--skip-serve-logs"]),
        Service("dag-processor", [airflow, "dag-processor"]),
        Service("triggerer", [airflow, "triggerer", "--skip-serve-logs"]),
        Service("mlflow", [mlflow, "ui", "--host", LOOPBACK, "--port", str(mlflow_port), "--workers", "1"]),
    ]


class ProcessGroup:
    """Processes that start together and stop together."""

    def __init__(self, environment: Mapping[str, str], logs: Path) -> None:
        self._environment = dict(environment)
        self._logs = logs
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, service: Service) -> None:
        """Start a process in a session of its own, so that a Ctrl-C reaches it only through :meth:`stop`."""
        self._logs.mkdir(parents=True, exist_ok=True)
        with (self._logs / f"{service.name}.log").open("w") as log:
            self._running[service.name] = subprocess.Popen(
                service.command,
                cwd=PROJECT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def check(self) -> None:
        """Check that all still run.

        Raises:
            UiError: one has ended.
        """
        for name, process in self._running.items():
            if process.poll() is not None:
                raise UiError(f"{name} ended with {process.returncode}: see the end of {self._logs / (name + '.log')}")

    def has_ended(self, name: str) -> bool:
        """Return whether one has done its work.

        Raises:
            UiError: it has failed.
        """
        code = self._running[name].poll()
        if code:
            self.check()
        return code == 0

    def stop(self) -> None:
        """Ask all to end, and after a while make them."""
        for how, patience_s in ((signal.SIGTERM, STOP_WITHIN_S), (signal.SIGKILL, STOP_WITHIN_S)):
            for process in self._running.values():
                try:
                    os.killpg(process.pid, how)
                except ProcessLookupError:
                    continue
            deadline = time.monotonic() + patience_s
            for process in self._running.values():
                try:
                    process.wait(timeout=max(0.1, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    continue
            if all(process.poll() is not None for process in self._running.values()):
                return


def require_free(port: int, option: str) -> None:
    """Check that a port can be listened on.

    Raises:
        UiError: something listens there already.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise UiError(f"port {port} is taken ({error.strerror}): pass another, {option} PORT") from error


def wait_until(is_done: Callable[[], bool], what: str, within_s: float = START_WITHIN_S) -> None:
    """Wait, and say so: at once, and then for how long.

    Raises:
        UiError: it took too long.
    """
    print(f"ui: waiting for {what} ...", flush=True)
    began_s = time.monotonic()
    with never_silent(f"ui: waiting for {what}", SAY_EVERY_S):
        while not is_done():
            if time.monotonic() - began_s > within_s:
                raise UiError(f"waited in vain for {what}, {within_s:.0f} s: see the logs")
            time.sleep(0.5)


def wait_for(what: str, url: str | Request, group: ProcessGroup) -> None:
    """Wait until a URL answers, and say so.

    Raises:
        UiError: it did not in time, or a process ended.
    """

    def answers() -> bool:
        group.check()
        try:
            with urlopen(url, timeout=5) as reply:
                return bool(reply.status == 200)
        except (URLError, OSError):
            return False

    wait_until(answers, what)


def prepare_airflow(environment: Mapping[str, str], logs: Path) -> None:
    """Make Airflow's database, unless it is there, and its pools.

    Raises:
        UiError: it could not be made.
    """
    is_there = (Path(environment["AIRFLOW_HOME"]) / "airflow.db").is_file()
    about = "" if is_there else ", which is made once and takes half a minute"
    prepare = "from cli.dag_runner import prepare_database; prepare_database()"
    group = ProcessGroup(environment, logs)
    try:
        group.start(Service("database", [sys.executable, "-c", prepare]))
        wait_until(lambda: group.has_ended("database"), f"Airflow's database{about}", math.inf)
    finally:
        group.stop()


def name_dags(names: Sequence[str]) -> list[str]:
    """Return the DAGs that ``--on`` names.

    Raises:
        UiError: one is unknown.
    """
    files = sorted(path.stem for path in (PROJECT / "dags").glob("tidewise_*.py"))
    wanted = files if ALL in names else [f"tidewise_{name.removeprefix('tidewise_')}" for name in names]
    unknown = sorted(set(wanted) - set(files))
    if unknown:
        listed = ", ".join(name.removeprefix("tidewise_") for name in files)
        raise UiError(f"there is no DAG {unknown[0]}; --on takes {listed}, or {ALL}")
    return wanted


def switch_on(names: Sequence[str], environment: Mapping[str, str], group: ProcessGroup) -> dict[str, bool]:
    """Switch DAGs on once Airflow has read their files; returns which DAGs are on.

    Raises:
        UiError: one is unknown, or its file was not read in time; ``run`` looks at the names before anything starts.
    """
    database = AirflowDatabase(Path(environment["AIRFLOW_HOME"]) / "airflow.db")
    wanted = name_dags(names)

    def are_read() -> bool:
        group.check()
        return set(wanted) <= set(database.read_paused())

    wait_until(are_read, "Airflow to read the DAGs")
    if any(database.read_paused()[name] for name in wanted):
        print(f"ui: switching on {', '.join(wanted)} ...", flush=True)
        command = [
            str(Path(sys.executable).with_name("airflow")),
            "dags",
            "unpause",
            "--yes",
            "--treat-dag-id-as-regex",
        ]
        subprocess.run([*command, f"^({'|'.join(wanted)})$"], env=environment, check=True, capture_output=True)
    return {name: not is_paused for name, is_paused in database.read_paused().items()}


def describe_switches(switched: Mapping[str, bool]) -> str:
    """Return which DAGs are on, and how the others are switched on.

    >>> describe_switches({"tidewise_plan": True, "tidewise_train": False})
    'DAGs that are on: plan; the others are paused until you switch them on, there or by make ui ARGS="--on all"'
    """
    on = sorted(name.removeprefix("tidewise_") for name, is_on in switched.items() if is_on)
    others = 'paused until you switch them on, there or by make ui ARGS="--on all"'
    if not on:
        return f"DAGs are {others}"
    return f"DAGs that are on: {', '.join(on)}" + ("" if all(switched.values()) else f"; the others are {others}")


def login(home: Path) -> str:
    """Return how to log in to Airflow, from the file in which its simple auth manager keeps the passwords it made."""
    file = home / "simple_auth_manager_passwords.json.generated"
    try:
        users: dict[str, str] = json.loads(file.read_text())
    except (OSError, ValueError):
        return f"user and password: {file}"
    return ", ".join(f"user {name}, password {password}" for name, password in users.items())


def runs_page(mlflow_url: str, experiment: str) -> str:
    """Return the path of MLflow's page of training runs, not of its GenAI view; nothing before the first training."""
    query = urlencode({"experiment_name": experiment})
    try:
        with urlopen(f"{mlflow_url}/api/2.0/mlflow/experiments/get-by-name?{query}", timeout=30) as reply:
            experiment_id = json.load(reply)["experiment"]["experiment_id"]
            return f"/#/experiments/{experiment_id}/runs?workflowType=machine_learning"  # not its page of GenAI traces
    except (HTTPError, OSError, ValueError, KeyError):
        return ""


def _stop_on_signals() -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature is Python's
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGINT, interrupt)  # a shell's background process would ignore it


def run(options: argparse.Namespace, _: float) -> None:
    """Start everything, say where it is, and stop it all on Ctrl-C."""
    if options.airflow_port == options.mlflow_port:
        raise UsageError("--airflow-port and --mlflow-port: expected two different ports")
    name_dags(options.on)
    settings = anchor_paths(load_settings())
    close_out(settings)
    require_free(options.airflow_port, "--airflow-port")
    require_free(options.mlflow_port, "--mlflow-port")
    airflow_url, mlflow_url = (f"http://{LOOPBACK}:{port}" for port in (options.airflow_port, options.mlflow_port))
    environment = airflow_environment(settings) | {
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{airflow_url}/execution/",
        "AIRFLOW__API__BASE_URL": airflow_url,
        # No command line: everybody on this machine sees those.
        "MLFLOW_BACKEND_STORE_URI": settings.mlflow.tracking_uri,
        "MLFLOW_DEFAULT_ARTIFACT_ROOT": settings.mlflow.artifact_root,
    }
    logs = PROJECT / local_beside(settings.paths.out) / "ui"
    print(f"ui: starting Airflow and MLflow, logs in {logs} ...", flush=True)
    group = ProcessGroup(environment, logs)
    _stop_on_signals()
    try:
        prepare_airflow(environment, logs)
        for service in services(options.airflow_port, options.mlflow_port):
            group.start(service)
        wait_for("MLflow", f"{mlflow_url}/health", group)
        wait_for("Airflow's API server", f"{airflow_url}/api/v2/monitor/health", group)
        switched = switch_on(options.on, environment, group)
        print(f"ui: Airflow  {airflow_url}   ({login(Path(environment['AIRFLOW_HOME']))})")
        print(f"ui: Tidewise {airflow_url}{PREFIX}/   (the fleet's page, by Airflow's log-in)")
        print(f"ui: MLflow   {mlflow_url}{runs_page(mlflow_url, settings.mlflow.experiment)}")
        print(f"ui: {describe_switches(switched)}. Ctrl-C stops everything.", flush=True)
        while True:
            time.sleep(2)
            group.check()
    except KeyboardInterrupt:
        print("ui: stopping ...", flush=True)
    finally:
        group.stop()


def _add_arguments(parser: CommandParser) -> None:
    port = whole_number(1, 65535)
    parser.add_argument("--airflow-port", type=port, default=8080, help="default: 8080")
    parser.add_argument("--mlflow-port", type=port, default=5000, help="default: 5000")
    parser.add_argument(
        "--on",
        nargs="+",
        default=[],
        metavar="DAG",
        help="switch these DAGs on: such as ingest plan watch, or all; others stay as they are",
    )


main = command("ui", __doc__, _add_arguments, run, errors=(UiError,))
