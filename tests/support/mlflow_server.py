"""An MLflow server on loopback, whose runs and models are in a database and whose files lie where it is told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from waiting import free_port, wait_until

from lab.local_flink.processes import end_process, start_process

HOST = "127.0.0.1"
_STARTS_S = 240.0


@contextmanager
def mlflow_server(folder: Path, database: str, artifacts: str) -> Iterator[str]:
    """Run a server; gives its address.

    Raises:
        AssertionError: it does not start.
    """
    port = free_port()
    folder.mkdir(parents=True)
    command = [str(Path(sys.executable).with_name("mlflow")), "server", "--host", HOST, "--port", str(port)]
    command += ["--workers", "1", "--backend-store-uri", database, "--default-artifact-root", artifacts]
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    server = start_process(command, folder / "log", quiet)
    address = f"http://{HOST}:{port}"
    try:
        assert wait_until(lambda: answers(f"{address}/health") or server.poll() is not None, _STARTS_S, 1.0)
        assert server.poll() is None, (folder / "log").read_text()[-3000:]
        yield address
    finally:
        end_process(server)


def answers(url: str) -> bool:
    """Whether an address answers with 200."""
    try:
        with urlopen(url, timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False
