"""``make ui``: both interfaces answer, on this machine only; a backfill runs behind them; one Ctrl-C stops all."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import psutil
import pytest
from delta_tables import read_rows
from small_world import World, write_small_history
from waiting import free_port, wait_until

from cli.embedded import below
from include.tables import OBSERVATIONS, PLANS

REPOSITORY = Path(__file__).resolve().parents[2]
HOURS = 2
STARTS_WITHIN_S, BACKFILL_WITHIN_S = 240.0, 1000.0

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1500)]


@dataclass(frozen=True)
class Ui:
    """A running ``make ui`` on a world with two hours of raw files, of which nothing is ingested."""

    world: World
    process: subprocess.Popen[str]
    airflow_port: int
    mlflow_port: int
    printed: str

    @property
    def airflow(self) -> str:
        return f"http://127.0.0.1:{self.airflow_port}"

    @property
    def mlflow(self) -> str:
        return f"http://127.0.0.1:{self.mlflow_port}"

    def api(self, path: str, method: str = "GET", body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask Airflow's REST API as the user that was printed."""
        user, password = re.search(r"user (\S+), password (\S+)\)", self.printed).groups()
        token = json.loads(fetch(f"{self.airflow}/auth/token", "POST", body={"username": user, "password": password}))
        headers = {"Authorization": f"Bearer {token['access_token']}"}
        return json.loads(fetch(f"{self.airflow}/api/v2{path}", method, headers, body))


def fetch(
    url: str, method: str = "GET", headers: dict[str, str] | None = None, body: dict[str, Any] | None = None
) -> str:
    data = json.dumps(body).encode() if body else None
    request = Request(url, data, {"Content-Type": "application/json"} | (headers or {}), method=method)
    with urlopen(request, timeout=60) as reply:
        return reply.read().decode()


def start(environment: dict[str, str], airflow_port: int, mlflow_port: int) -> subprocess.Popen[str]:
    ports = ["--airflow-port", str(airflow_port), "--mlflow-port", str(mlflow_port)]
    return subprocess.Popen(
        [sys.executable, "-m", "cli.console", "ui", *ports],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ui]:
    """``make ui`` for all tests of this file; the last one stops it."""
    root = tmp_path_factory.mktemp("ui")
    write_small_history(root / "raw", HOURS)
    world, ports = World(root / "out", root / "raw"), (free_port(), free_port())
    child = start(world.environment | {"TIDEWISE__SPARK__MASTER": "local[2]"}, *ports)
    try:
        lines = []
        for line in child.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        yield Ui(world, child, *ports, "".join(lines))
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
        child.wait(timeout=90)


def test_both_interfaces_answer(ui: Ui) -> None:
    assert ui.airflow in ui.printed
    assert ui.mlflow in ui.printed
    known = wait_until(lambda: {dag["dag_id"] for dag in ui.api("/dags?limit=50")["dags"]}, STARTS_WITHIN_S, 2)
    assert {"tidewise_hour", "tidewise_ingest", "tidewise_plan", "tidewise_control"} <= known
    assert {"tidewise_spark", "tidewise_control"} <= {pool["name"] for pool in ui.api("/pools")["pools"]}
    assert "<html" in fetch(f"{ui.airflow}/").lower()
    assert "<html" in fetch(f"{ui.mlflow}/").lower()


def test_the_interfaces_answer_on_this_machine_only(ui: Ui) -> None:
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in others - {"127.0.0.1", "127.0.1.1"}:
        for port in (ui.airflow_port, ui.mlflow_port):
            assert not is_open(port, address)


def test_none_of_its_processes_listens_on_another_address(ui: Ui) -> None:
    mine = [psutil.Process(ui.process.pid), *psutil.Process(ui.process.pid).children(recursive=True)]
    listening = []
    for process in mine:
        with contextlib.suppress(psutil.NoSuchProcess):
            result = process.net_connections(kind="inet")
            listening += [(one.laddr, process.name()) for one in result if one.status == psutil.CONN_LISTEN]
    assert {address.port for address, _ in listening} >= {ui.airflow_port, ui.mlflow_port}
    assert [one for one in listening if not ipaddress.ip_address(one[0].ip.removeprefix("::ffff:")).is_loopback] == []


def is_open(port: int, address: str = "127.0.0.1") -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex((address, port)) == 0


def test_a_backfill_ingests_each_hour_and_plans_nothing(ui: Ui) -> None:
    wait_until(lambda: any(dag["dag_id"] == "tidewise_hour" for dag in ui.api("/dags?limit=50")["dags"]), 120, 2)
    dates = ["--from-date", "2026-11-20T17:00:00Z", "--to-date", "2026-11-20T18:30:00Z"]
    asked = ["backfill", "create", "--dag-id", "tidewise_hour", *dates]
    command = [sys.executable, "-m", "cli.console", "airflow", *asked]
    done = subprocess.run(
        [*command, "--max-active-runs", "1"],
        cwd=REPOSITORY,
        env=ui.world.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ui.api("/dags/tidewise_hour", "PATCH", {"is_paused": False})
    wait_until(lambda: len(ended(states(ui.world))) == HOURS, BACKFILL_WITHIN_S, 1)
    assert sorted(states(ui.world).values()) == ["success"] * HOURS, states(ui.world)
    rows = [json.loads(row) for row in read_rows(ui.world.out / "lake", OBSERVATIONS)]
    assert {row["hour"] for row in rows} == {17, 18}
    plans = [json.loads(row) for row in read_rows(ui.world.out / "lake", PLANS) or ()]
    assert [row for row in plans if row["as_of"].startswith("2026-11-20")] == []  # the hour of now has one of its own


def states(world: World) -> dict[str, str]:
    """Return run id -> state of the backfill's runs, from Airflow's tables."""
    query = "select run_id, state from dag_run where dag_id = 'tidewise_hour' and run_type = 'backfill'"
    with sqlite3.connect(f"file:{world.out / 'airflow' / 'airflow.db'}?mode=ro", uri=True, timeout=60) as database:
        return dict(database.execute(query).fetchall())


def ended(found: dict[str, str]) -> dict[str, str]:
    return {run: state for run, state in found.items() if state in {"success", "failed"}}


def test_one_ctrl_c_stops_all(ui: Ui) -> None:
    ui.process.send_signal(signal.SIGINT)
    assert ui.process.wait(timeout=90) == 0
    assert not any(is_open(port) for port in (ui.airflow_port, ui.mlflow_port))


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        child = start(dict(os.environ) | below(tmp_path), port, free_port())
        printed, _ = child.communicate(timeout=120)
    assert child.returncode == 1
    assert f"port {port} is taken" in printed
    assert "--airflow-port" in printed
    assert "Traceback" not in printed
