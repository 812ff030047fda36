"""The controller as a process of its own, as its DAG starts it, and what it wrote down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from include.settings import PROJECT
from include.tables import CONTROL_LOG


def start_controller(environment: Mapping[str, str], log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a controller; its output goes to a file."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "controller", *arguments],
            cwd=PROJECT,
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


@contextmanager
def controlling(environment: Mapping[str, str], log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Let a controller run beside everything else; it is told to stop at the end, and has to."""
    process = start_controller(environment, log, *arguments)
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0, log.read_text()[-3000:]
    finally:
        process.kill()
        process.wait(timeout=10)


def read_log(lake: Path, **wanted: Any) -> list[dict[str, Any]]:
    """Return the rows of the control log in order, those with the wanted values."""
    try:
        rows = DeltaTable(str(lake / CONTROL_LOG.relative_path)).to_pyarrow_table().to_pylist()
    except TableNotFoundError:
        return []
    chosen = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return sorted(chosen, key=lambda row: (row["cluster"], row["job"], row["lease_number"], row["entry"]))
