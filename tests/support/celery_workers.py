"""Celery workers of an Airflow, each on a machine of its own, which may be lost."""

from __future__ import annotations

import subprocess
from contextlib import suppress

import psutil
from airflow_parts import PROGRAM, AirflowParts
from worker_machine import Machine

from lab.local_flink.processes import end_process, start_process


class CeleryWorker:
    """A Celery worker on a machine of its own; one task at a time.

    Args:
        airflow: whose tasks it takes.
        machine: where.
        name: unlike that of any other.
    """

    def __init__(self, airflow: AirflowParts, machine: Machine, name: str) -> None:
        self.machine, self.name = machine, name
        self._airflow = airflow
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Let it take tasks."""
        command = [PROGRAM, "celery", "worker", "--celery-hostname", f"{self.name}@%h", "--concurrency", "1"]
        command += ["--skip-serve-logs", "--without-gossip", "--without-mingle"]
        environment = self._airflow.environment(self.machine)
        self._process = start_process(command, self.machine.folder / "worker.log", environment)

    def list_processes(self) -> list[psutil.Process]:
        """Return its process and all that it has started."""
        if self._process is None:
            return []
        try:
            own = psutil.Process(self._process.pid)
            return [own, *own.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def drives_spark(self) -> bool:
        """Whether a Spark driver runs on it."""
        return any("launch.py" in word for one in self.list_processes() for word in _command(one))

    def lose(self) -> None:
        """Kill it and everything on it at once, as where a machine is lost."""
        processes = self.list_processes()
        for one in processes:
            _send(one, "suspend")  # so that none has time to say that another has ended
        for one in processes:
            _send(one, "kill")
        psutil.wait_procs(processes, timeout=30)

    def end(self) -> None:
        """End it, and what it has left."""
        processes = self.list_processes()
        if self._process is not None:
            end_process(self._process)
        for one in processes:
            _send(one, "kill")


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def _send(process: psutil.Process, how: str) -> None:
    with suppress(psutil.NoSuchProcess):
        getattr(process, how)()
