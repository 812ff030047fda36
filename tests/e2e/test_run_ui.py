"""``make ui``: both interfaces answer, on this machine only, and all is stopped by one Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from cli.embedded import below

REPOSITORY = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.e2e


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url: str, headers: dict[str, str] | None = None, body: dict[str, str] | None = None) -> str:
    data = json.dumps(body).encode() if body else None
    request = Request(url, data=data, headers={"Content-Type": "application/json"} | (headers or {}))
    with urlopen(request, timeout=30) as reply:
        return reply.read().decode()


def start(out: Path, airflow_port: int, mlflow_port: int) -> subprocess.Popen[str]:
    ports = ["--airflow-port", str(airflow_port), "--mlflow-port", str(mlflow_port)]
    return subprocess.Popen(
        [sys.executable, "-m", "cli.ui", *ports],
        cwd=REPOSITORY,
        env=dict(os.environ) | below(out),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_until_dags_are_known(airflow: str, token: str) -> set[str]:
    deadline = time.monotonic() + 120
    while True:
        listing = json.loads(get(f"{airflow}/api/v2/dags?limit=50", {"Authorization": f"Bearer {token}"}))
        found = {dag["dag_id"] for dag in listing["dags"]}
        if found or time.monotonic() > deadline:
            return found
        time.sleep(2)


def test_both_interfaces_answer_and_stop(tmp_path):
    airflow_port, mlflow_port = free_port(), free_port()
    child = start(tmp_path, airflow_port, mlflow_port)
    try:
        lines = []
        for line in child.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        printed = "".join(lines)
        airflow, mlflow = f"http://127.0.0.1:{airflow_port}", f"http://127.0.0.1:{mlflow_port}"
        assert airflow in printed
        assert mlflow in printed
        user, password = re.search(r"user (\S+), password (\S+)\)", printed).groups()
        token = json.loads(get(f"{airflow}/auth/token", body={"username": user, "password": password}))["access_token"]
        dags = wait_until_dags_are_known(airflow, token)
        assert {"tidewise_ingest", "tidewise_plan", "tidewise_apply"} <= dags
        pools = json.loads(get(f"{airflow}/api/v2/pools", {"Authorization": f"Bearer {token}"}))["pools"]
        assert {"tidewise_spark", "tidewise_collect"} <= {pool["name"] for pool in pools}
        assert "<html" in get(f"{airflow}/").lower()
        assert "<html" in get(f"{mlflow}/").lower()
        assert_loopback_only(airflow_port, mlflow_port)
    finally:
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=90) == 0
    for port in (airflow_port, mlflow_port):
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0


def assert_loopback_only(*ports: int) -> None:
    """The ports answer on the loopback address and not on the machine's other addresses."""
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in others - {"127.0.0.1", "127.0.1.1"}:
        for port in ports:
            with socket.socket() as probe:
                probe.settimeout(2)
                assert probe.connect_ex((address, port)) != 0


def test_a_taken_port_is_named(tmp_path):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        child = start(tmp_path, port, free_port())
        printed, _ = child.communicate(timeout=60)
    assert child.returncode == 1
    assert f"port {port} is taken" in printed
    assert "--airflow-port" in printed
    assert "Traceback" not in printed
