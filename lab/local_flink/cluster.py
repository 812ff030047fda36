"""A real Flink cluster on loopback without containers: a JobManager and its TaskManagers, each a java process."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from cli.java_build import JavaBuildError, java_tool
from include.flink.faults import FlinkError, FlinkUnreachableError
from lab.local_flink.build import FLINK_HOME, flink_version
from lab.local_flink.configuration import (
    APPLICATION,
    JOB_MANAGER,
    TASK_MANAGER,
    ClusterOptions,
    flink_configuration,
    java_command,
    write_configuration,
)
from lab.local_flink.job_client import JobClient
from lab.local_flink.processes import end_process, start_process

__all__ = ["ClusterNotReadyError", "ClusterOptions", "JavaBuildError", "LocalCluster"]


class ClusterNotReadyError(FlinkError):
    """The cluster did not come up in time or a process of it ended; the message has the end of its log."""


def free_ports(count: int) -> list[int]:
    """Return loopback ports that were free a moment ago."""
    holders = [socket.socket() for _ in range(count)]
    try:
        for holder in holders:
            holder.bind(("127.0.0.1", 0))
        return [int(holder.getsockname()[1]) for holder in holders]
    finally:
        for holder in holders:
            holder.close()


class LocalCluster:
    """Started on entering the context, gone (whole process groups) on leaving it, however it is left.

    Args:
        work_dir: configuration, logs (``log/``), checkpoints and uploads; kept after the end.
        options: slots and timings.
        flink_home: folder with Flink's ``lib`` and ``plugins``.
        ready_timeout_s: limit for the JobManager to reply and for the TaskManagers' slots to appear.
    """

    def __init__(
        self,
        work_dir: Path,
        options: ClusterOptions | None = None,
        *,
        flink_home: Path = FLINK_HOME,
        ready_timeout_s: float = 120.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.work_dir = work_dir.resolve()
        self.options = options or ClusterOptions()
        self._home = flink_home.resolve()
        self._ready_timeout_s = ready_timeout_s
        self._clock = clock
        self._sleep = sleep
        self._job_manager: subprocess.Popen[bytes] | None = None
        self._task_managers: dict[int, subprocess.Popen[bytes]] = {}
        self._client: JobClient | None = None
        self._generation = 0

    @property
    def client(self) -> JobClient:
        """Client of the running cluster."""
        if self._client is None:
            raise ClusterNotReadyError("the cluster was not started; use it as a context manager")
        return self._client

    @property
    def rest_url(self) -> str:
        """The JobManager's REST address."""
        return self.client.rest_url

    @property
    def process_ids(self) -> list[int]:
        """Process ids of the java processes that are alive."""
        return [process.pid for _, process in self._processes() if process.poll() is None]

    def __enter__(self) -> LocalCluster:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start all processes and wait until all slots are free.

        Raises:
            JavaBuildError: java or Flink's jars are missing.
            ClusterNotReadyError: it did not come up within the limit.
        """
        version = flink_version(self._home)
        java_tool("java")
        for name in ("tmp", "upload", "checkpoints", "log"):
            (self.work_dir / name).mkdir(parents=True, exist_ok=True)
        rest, rpc = free_ports(2)
        ports = {"rest": rest, "rpc": rpc}
        write_configuration(self._conf_dir, flink_configuration(self.options, ports, self.work_dir), version)
        self._client = JobClient(f"http://127.0.0.1:{rest}")
        self.start_jobmanager(wait=False)
        for number in range(self.options.task_managers):
            self.start_taskmanager(number, wait=False)
        self._wait_for_slots()

    def start_jobmanager(self, *, wait: bool = True) -> None:
        """Start the JobManager (again, at the same address) and, unless told otherwise, wait until all slots are there.

        Its jobs of before are gone: it keeps nothing.
        """
        if self._job_manager is not None and self._job_manager.poll() is None:
            raise FlinkError("the JobManager is running already; kill_jobmanager() first")
        self._job_manager = self._launch(JOB_MANAGER, "jobmanager")
        if wait:
            self._wait_for_slots()

    def start_taskmanager(self, number: int = 0, *, wait: bool = True) -> None:
        """Start a TaskManager (again) and, unless told otherwise, wait until the JobManager counts its slots."""
        known = self._task_managers.get(number)
        if known is not None and known.poll() is None:
            raise FlinkError("the TaskManager is running already; kill_taskmanager() first")
        self._generation += 1
        self._task_managers[number] = self._launch(TASK_MANAGER, f"taskmanager-{self._generation}")
        if wait:
            self._wait_for_slots()

    def kill_jobmanager(self) -> None:
        """End the JobManager as a crash would (SIGKILL)."""
        if self._job_manager is not None:
            end_process(self._job_manager, grace_s=0)

    def kill_taskmanager(self, number: int = 0) -> None:
        """End a TaskManager as a crash would (SIGKILL)."""
        if number in self._task_managers:
            end_process(self._task_managers[number], grace_s=0)

    def stop(self) -> None:
        """End everything; harmless when nothing runs."""
        for _, process in reversed(self._processes()):
            end_process(process)
        if self._client is not None:
            self._client.close()

    @property
    def _conf_dir(self) -> Path:
        return self.work_dir / "conf"

    def _launch(self, entry_point: str, name: str) -> subprocess.Popen[bytes]:
        logs = self.work_dir / "log"
        application = self.options.application
        is_application = application is not None and entry_point == JOB_MANAGER
        command = java_command(
            java_tool("java"),
            self._home,
            self._conf_dir,
            logs / f"{name}.log",
            APPLICATION if is_application else entry_point,
            application=application,
        )
        return start_process(command, logs / f"{name}.out", {"FLINK_PLUGINS_DIR": str(self._home / "plugins")})

    def _processes(self) -> list[tuple[str, subprocess.Popen[bytes]]]:
        """Return the java processes with their names, those that have ended too; the JobManager first."""
        job_manager = [] if self._job_manager is None else [("JobManager", self._job_manager)]
        return [*job_manager, *(("TaskManager", process) for process in self._task_managers.values())]

    def _wait_for_slots(self) -> None:
        expected = self.options.slots * len(self._task_managers)
        deadline = self._clock() + self._ready_timeout_s
        while self._clock() < deadline:
            self._refuse_dead_process()
            try:
                # More than this generation's slots are counted while a killed TaskManager has not been missed yet.
                if int(self.client.overview()["slots-total"]) == expected:
                    return
            except (FlinkUnreachableError, KeyError):
                pass
            except FlinkError:  # the REST server is up before the leader is elected: 404 and 503 until then
                pass
            self._sleep(0.3)
        raise ClusterNotReadyError(f"no {expected} slots within {self._ready_timeout_s:g} s{self._log_ends()}")

    def _refuse_dead_process(self) -> None:
        for name, process in self._processes():
            if process.poll() is not None:
                raise ClusterNotReadyError(f"the {name} ended with code {process.returncode}{self._log_ends()}")

    def _log_ends(self) -> str:
        ends = [f"; logs in {self.work_dir / 'log'}"]
        for log in sorted((self.work_dir / "log").iterdir()):
            lines = log.read_text(errors="replace").splitlines()[-3:]
            ends += [f"\n  {log.name}: {line[:300]}" for line in lines]
        return "".join(ends)
