"""Requests of those who run jobs themselves: deploy one, change its parallelism and wait until it runs so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.flink import endpoints
from include.flink.client import FlinkClient
from include.flink.faults import FlinkError, FlinkUnreachableError
from include.flink.job_states import RUNNING


class ParallelismNotReachedError(FlinkError):
    """The job did not run at the requested parallelism in time; the message has what it ran at instead."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A parallelism that the job was observed to run at.

    Attributes:
        parallelism: operator name -> running parallelism.
        seconds: from the call to the first poll that saw it.
        polls: how many times the job was polled.
    """

    parallelism: dict[str, int]
    seconds: float
    polls: int


def running_parallelism(job: Mapping[str, Any]) -> dict[str, int]:
    """Return operator name -> parallelism of a ``/jobs/:jobid`` reply; empty unless it and all vertices are RUNNING."""
    vertices = job.get("vertices", [])
    if job["state"] != RUNNING or any(vertex["status"] != "RUNNING" for vertex in vertices):
        return {}
    return {vertex["name"]: int(vertex["parallelism"]) for vertex in vertices}


class JobClient(FlinkClient):
    """One cluster's REST API, with what deploys and rescales jobs; see FlinkClient."""

    def overview(self) -> dict[str, Any]:
        """Return slots, TaskManagers and job counts of the cluster."""
        return self._object("/overview")

    def job_metrics(self, job_id: str, names: Iterable[str] = endpoints.JOB_METRICS) -> dict[str, str]:
        """Return the job's own metrics that exist, name -> value as text."""
        result = self.transport.get_json(endpoints.job_metrics_path(job_id, names))
        return {entry["id"]: entry["value"] for entry in result}

    def set_parallelism(self, job_id: str, targets: Mapping[str, int]) -> dict[str, int]:
        """Ask for a parallelism by operator name; the operators not named keep the bound they have.

        Returns:
            Operator name -> upper bound as sent, for every vertex of the job.

        Raises:
            FlinkError: the job has no operator of that name.
        """
        names = {vertex["id"]: vertex["name"] for vertex in self.job(job_id)["vertices"]}
        unknown = set(targets) - set(names.values())
        if unknown:
            raise FlinkError(f"job {job_id} has no operator {sorted(unknown)}; it has {sorted(names.values())}")
        bounds = {vertex: bound["parallelism"] for vertex, bound in self.resource_requirements(job_id).items()}
        wanted = {vertex: targets.get(name, int(bounds[vertex]["upperBound"])) for vertex, name in names.items()}
        lower = {vertex: int(bounds[vertex].get("lowerBound", 1)) for vertex in wanted}
        self.put_resource_requirements(job_id, wanted, lower)
        return {names[vertex]: bound for vertex, bound in wanted.items()}

    def running_parallelism(self, job_id: str) -> dict[str, int]:
        """Return operator name -> parallelism; empty unless the job and all its vertices are RUNNING."""
        return running_parallelism(self.job(job_id))

    def wait_for_parallelism(
        self,
        job_id: str,
        targets: Mapping[str, int],
        *,
        timeout_s: float = 180.0,
        poll_every_s: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Confirmed:
        """Poll until the job runs at the targets (operator name -> parallelism); other operators may be at anything.

        A connection error while waiting is not the end: the JobManager may be busy with the very rescale.

        Raises:
            ParallelismNotReachedError: the time limit passed; the message has the last observed parallelism.
        """
        started = clock()
        polls, observed = 0, "nothing running"
        while True:
            polls += 1
            try:
                running = self.running_parallelism(job_id)
                observed = str(running) if running else "not all vertices RUNNING"
            except FlinkUnreachableError as error:
                running, observed = {}, str(error)
            if running and all(running.get(name) == wanted for name, wanted in targets.items()):
                return Confirmed(running, clock() - started, polls)
            if clock() - started >= timeout_s:
                raise ParallelismNotReachedError(
                    f"job {job_id}: wanted {dict(targets)}, after {timeout_s:g} s: {observed}; are there enough slots?"
                )
            sleep(poll_every_s)

    def upload_jar(self, jar: Path) -> str:
        """Upload a jar; returns the id under which the JobManager keeps it."""
        form = {"jarfile": (jar.name, jar.read_bytes(), "application/x-java-archive")}
        reply = self.transport.send_json("POST", "/jars/upload", fields=form)
        return str(reply["filename"]).rsplit("/", 1)[-1]

    def run_jar(self, jar_id: str, entry_class: str, arguments: Sequence[str], savepoint: str = "") -> str:
        """Start a job from an uploaded jar, from a savepoint if one is given; returns its job id."""
        body: dict[str, object] = {"entryClass": entry_class, "programArgsList": list(arguments)}
        body |= {"savepointPath": savepoint} if savepoint else {}
        return str(self.transport.send_json("POST", f"/jars/{jar_id}/run", json=body)["jobid"])

    def stop_with_savepoint(self, job_id: str, folder: Path, *, timeout_s: float = 180.0) -> str:
        """Stop a job with a savepoint below a folder; returns the savepoint's place.

        Raises:
            FlinkError: the savepoint failed, or was not there in time.
        """
        body = {"targetDirectory": folder.resolve().as_uri(), "drain": False}
        asked = self.transport.send_json("POST", endpoints.job_path(job_id, "stop"), json=body)["request-id"]
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            reply = self._object(endpoints.job_path(job_id, f"savepoints/{asked}"))
            if reply["status"]["id"] == "COMPLETED":
                done = reply["operation"]
                if "location" not in done:
                    raise FlinkError(f"job {job_id}: no savepoint: {str(done.get('failure-cause'))[:500]}")
                return str(done["location"])
            time.sleep(0.5)
        raise FlinkError(f"job {job_id}: no savepoint within {timeout_s:g} s")

    def cancel(self, job_id: str) -> None:
        """Cancel a job without a savepoint."""
        self.transport.send_json("PATCH", f"{endpoints.job_path(job_id)}?mode=cancel")
