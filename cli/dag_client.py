"""Runs DAGs in a child process (:mod:`cli.dag_runner`) and follows what they do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from cli.dag_runner import REPLY
from cli.process_group import PATIENCE_S, end_group
from include.settings import PROJECT

_STAGE_STARTS = re.compile(r"tidewise: stage (\S+) starts")
_CAUSE = re.compile(r"tidewise: stage \S+ failed: .*?(?=\s+\[airflow\.|$)")


class DagFailedError(RuntimeError):
    """A DAG run did not succeed; the message names the task, the cause if the log tells it, and the log."""


class DagClient:
    """A context in which DAGs run one after the other.

    Args:
        environment: of the child, from :func:`cli.embedded.airflow_environment`.
        log: file that receives everything Airflow and Spark print.
        on_stage: called with the name of a stage when it starts.
    """

    def __init__(self, environment: Mapping[str, str], log: Path, on_stage: Callable[[str], None]) -> None:
        self._environment = dict(environment)
        self._log = log
        self._on_stage = on_stage
        self._cause: str | None = None
        self._is_ready = False

    def __enter__(self) -> DagClient:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._log.open("w", encoding="utf-8")
        self._child = subprocess.Popen(
            [sys.executable, "-m", "cli.dag_runner"],
            cwd=PROJECT,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        return self  # Airflow needs some ten seconds to start: the caller may do other work meanwhile

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._child.stdin:
            self._child.stdin.close()
        # After a failure or a Ctrl-C the running task and its spark-submit must not outlive this process.
        if kind is not None or not self._ends_by_itself():
            end_group(self._child)
        self._file.close()

    def _ends_by_itself(self) -> bool:
        try:
            self._child.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def run(self, dag_id: str, conf: Mapping[str, str]) -> None:
        """Run one DAG with parameters.

        Raises:
            DagFailedError: the run did not succeed.
        """
        line = json.dumps({"dag_id": dag_id, "conf": dict(conf)})
        if self._child.stdin is None:
            raise DagFailedError("the DAG runner takes no requests")
        if not self._is_ready:
            self._next_reply()
            self._is_ready = True
        self._cause = None
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()
        reply = self._next_reply()
        if reply["state"] != "success":
            raise self._failure(dag_id, reply["tasks"])

    def _next_reply(self) -> dict[str, Any]:
        """Copy the child's output to the log until it replies."""
        if self._child.stdout is None:
            raise DagFailedError("the DAG runner has no output")
        for line in self._child.stdout:
            if line.startswith(REPLY):
                return dict(json.loads(line.removeprefix(REPLY)))
            self._file.write(line)
            self._file.flush()
            if started := _STAGE_STARTS.search(line):
                self._on_stage(started[1])
            if cause := _CAUSE.search(line):
                self._cause = cause[0]
        raise DagFailedError(f"Airflow stopped with exit code {self._child.wait()}; see the end of {self._log}")

    def _failure(self, dag_id: str, states: Mapping[str, str]) -> DagFailedError:
        failed = [task for task, state in states.items() if state == "failed"] or sorted(states)
        cause = f": {self._cause}" if self._cause else ""
        remedy = f"log: {self._log}; what to do: docs/runbook.md#when-a-stage-fails"
        return DagFailedError(f"{dag_id}: {', '.join(failed)} failed{cause}\n{remedy}")
