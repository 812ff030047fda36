"""An Airflow of several machines on loopback: PostgreSQL, Celery over Redis, and its parts as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from waiting import free_port, wait_until
from worker_machine import Machine

from lab.local_flink.processes import end_process, start_process

HOST = "127.0.0.1"
PROGRAM = str(Path(sys.executable).with_name("airflow"))
LOST_AFTER_S = 120
_STARTS_S = 600.0
# Made for this test; each part of one Airflow has to have the same.
_SECRETS = {
    "AIRFLOW__CORE__FERNET_KEY": "dGlkZXdpc2UtdGlkZXdpc2UtdGlkZXdpc2UtMTIzNDU=",
    "AIRFLOW__API_AUTH__JWT_SECRET": "made-for-a-test-made-for-a-test-made-for-a-test",
    "AIRFLOW__API__SECRET_KEY": "another-made-for-a-test",
}


@dataclass(frozen=True, slots=True)
class AirflowParts:
    """An Airflow.

    Attributes:
        main: machine of its scheduler, DAG processor and API server.
        port: of the API server.
        shared: variables of all its machines.
    """

    main: Machine
    port: int
    shared: Mapping[str, str]

    def environment(self, machine: Machine) -> dict[str, str]:
        """Return the variables of a machine."""
        return {**self.shared, **machine.environment}

    def run(self, *command: str) -> str:
        """Run a program on the main machine; returns what it prints.

        Raises:
            AssertionError: it fails.
        """
        done = subprocess.run(
            command,
            cwd=self.main.checkout,
            env=os.environ | self.environment(self.main),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-3000:]}"
        return done.stdout

    def request(self, method: str, path: str, content: object) -> Any:
        """Ask the API; returns its reply."""
        address = f"http://{HOST}:{self.port}"
        with urlopen(f"{address}/auth/token", timeout=60) as reply:  # of a user who may do all, without a login
            token = json.load(reply)["access_token"]
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        body = json.dumps(content).encode()
        with urlopen(Request(f"{address}{path}", body, headers, method=method), timeout=60) as reply:
            return json.load(reply)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the parts that there is one of.

        Raises:
            AssertionError: one of them does not work.
        """
        parts = {
            "api-server": ["--host", HOST, "--port", str(self.port), "--workers", "1"],
            "scheduler": ["--skip-serve-logs"],
            "dag-processor": [],
        }
        environment, logs = self.environment(self.main), self.main.folder
        with ExitStack() as stack:
            for name, options in parts.items():
                process = start_process([PROGRAM, name, *options], logs / f"{name}.log", environment)
                stack.callback(end_process, process)
            assert wait_until(self._is_healthy, _STARTS_S, 1.0), "\n".join(
                (logs / f"{name}.log").read_text(errors="replace")[-2000:] for name in parts
            )
            yield

    def _is_healthy(self) -> bool:
        try:
            with urlopen(f"http://{HOST}:{self.port}/api/v2/monitor/health", timeout=30) as reply:
                states = json.load(reply)
        except OSError:
            return False
        return all(states[name]["status"] == "healthy" for name in ("metadatabase", "scheduler", "dag_processor"))


def describe_airflow(main: Machine, postgres: str, redis: str, own: Mapping[str, str]) -> AirflowParts:
    """Return an Airflow that does not run yet.

    Args:
        main: of its scheduler.
        postgres: ``user@host:port``; its tables are in database ``airflow``.
        redis: URL of the broker.
        own: further variables of all machines.
    """
    port = free_port()
    shared = {
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://{HOST}:{port}/execution/",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{postgres}/airflow",
        "AIRFLOW__CELERY__BROKER_URL": redis,
        "AIRFLOW__CELERY__RESULT_BACKEND": f"db+postgresql://{postgres}/airflow",
        "AIRFLOW__CELERY__SYNC_PARALLELISM": "1",
        # Only what is asked for runs: the hours of this test are not those of its clock.
        "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",
        # A task whose worker says nothing for so long is lost; by default after five minutes.
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(LOST_AFTER_S),
        # Where one processor serves all machines, five seconds, the default, are not enough.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        **_SECRETS,
        **own,
    }
    return AirflowParts(main, port, shared)
