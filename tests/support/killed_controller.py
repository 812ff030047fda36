"""A controller as a service, killed after Flink has taken its request and before it knows; another one goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from controller_process import read_log
from flink_server import FlinkServer, Request
from waiting import wait_until
from worker_machine import Machine

from benchmarks.chaos.plan_rows import Step, plan_step
from benchmarks.chaos.run_settings import CLUSTER
from include.place import place
from lab.local_flink.processes import end_process, start_process

JOB = "orders"
TAKES_OVER_S = 420.0
"""A lease ends after three minutes; on a busy machine the next controller needs a while from there."""
# More often than by default; what is decided is the same.
_PACE = {"TIDEWISE__PLANNER__TIMING__APPLY_EVERY_S": "20"}


class KilledController:
    """A controller on a machine of its own, and a job of a cluster that replies as Flink does.

    Args:
        server: the cluster, with one job.
        machine: where the controller runs.
        lake: URI of the lake.
    """

    def __init__(self, server: FlinkServer, machine: Machine, lake: str) -> None:
        self._server, self._machine, self._lake = server, machine, lake
        self._process: subprocess.Popen[bytes] | None = None
        self._is_killed = threading.Event()

    @property
    def requests(self) -> int:
        """How often Flink was asked for another parallelism."""
        return len(self._server.asked("PUT"))

    @property
    def output(self) -> str:
        """The end of what the controllers printed."""
        return (self._machine.folder / "controller.log").read_text(errors="replace")[-3000:]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run a controller; what was started last is told to stop at the end."""
        self._start()
        try:
            yield
        finally:
            if self._process is not None:
                end_process(self._process, grace_s=60)

    def _start(self) -> None:
        command = [sys.executable, "-m", "controller", "--cluster", CLUSTER]
        output = self._machine.folder / "controller.log"
        self._process = start_process(command, output, self._machine.environment | _PACE)

    def read_log(self, **wanted: Any) -> list[dict[str, Any]]:
        """Return the rows about the job; its policy gives steps of a plan names of its own."""
        return read_log(place(self._lake), cluster=CLUSTER, job=JOB, **wanted)

    def plan(self, target: int) -> Step:
        """Have a step planned that is due now."""
        (job,), now_s = self._server.jobs, time.time()
        before = {job.names[one]: count for one, count in job.parallelism.items()}
        wanted = dict.fromkeys(before, target)
        return plan_step(self._lake, (job.name, job.job_id), before, wanted, (now_s, now_s + 3600.0))

    def kill_when_it_sends(self) -> None:
        """Kill the controller as soon as Flink has done what it asks for, and start another one.

        Raises:
            AssertionError: it sends nothing.
        """
        self._server.troubles["/resource-requirements"] = self._do_and_kill
        assert self._is_killed.wait(300), self.output
        self._server.troubles.clear()
        self._start()

    def _do_and_kill(self, request: Request) -> None:
        status, content = self._server._reply(request)
        if request.method == "PUT":
            assert self._process is not None
            end_process(self._process, grace_s=0)
            self._is_killed.set()
        request.write_json(content, status)

    def command(self, *arguments: str) -> str:
        """Run one of the project's commands on the controller's machine; returns what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=self._machine.checkout,
            env=os.environ | self._machine.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def wait_for(self, count: int, **wanted: Any) -> list[dict[str, Any]]:
        """Wait for so many rows about the job.

        Raises:
            AssertionError: they do not come.
        """
        come = wait_until(lambda: len(self.read_log(**wanted)) >= count, TAKES_OVER_S, 2.0)
        assert come, f"{wanted}: {[(row['verb'], row['reason']) for row in self.read_log()]}\n{self.output}"
        return self.read_log(**wanted)
