"""Requests to a Flink cluster: read a job, change its parallelism, confirm the change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.flink import endpoints
from include.flink.faults import FlinkError, FlinkRefused, FlinkUnreachable
from include.flink.transport import Transport

__all__ = ["Confirmed", "FlinkClient", "FlinkError", "FlinkRefused", "FlinkUnreachable", "ParallelismNotReached"]


class ParallelismNotReached(FlinkError):  # noqa: N818 - reads as what happened
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


class FlinkClient:
    """One cluster's REST API; every method raises FlinkUnreachable or FlinkRefused. See Transport for the arguments."""

    def __init__(self, rest_url: str, **transport: Any) -> None:
        self.transport = Transport(rest_url, **transport)
        self.rest_url = self.transport.rest_url

    def overview(self) -> dict[str, Any]:
        """Return slots, TaskManagers and job counts of the cluster."""
        return self._object("/overview")

    def job(self, job_id: str) -> dict[str, Any]:
        """Return a job's state, state timestamps and vertices."""
        return self._object(endpoints.job_path(job_id))

    def job_metrics(self, job_id: str, names: Iterable[str] = endpoints.JOB_METRICS) -> dict[str, str]:
        """Return the job's own metrics that exist, name -> value as text."""
        result = self.transport.get_json(endpoints.job_metrics_path(job_id, names))
        return {entry["id"]: entry["value"] for entry in result}

    def checkpoints(self, job_id: str) -> Any:
        """Return counts, summary and latest checkpoints."""
        return self.transport.get_json(endpoints.job_path(job_id, "checkpoints"))

    def checkpoint_config(self, job_id: str) -> Any:
        """Return interval, timeout and pause of a job's checkpoints; 404 where Flink knows of none."""
        return self.transport.get_json(endpoints.job_path(job_id, "checkpoints/config"))

    def exceptions(self, job_id: str) -> Any:
        """Return a job's failures, as far as Flink remembers them."""
        return self.transport.get_json(endpoints.job_path(job_id, "exceptions"))

    def task_manager_metrics(self, names: Iterable[str]) -> Any:
        """Return least and largest value of metrics over all TaskManagers."""
        return self.transport.get_json(endpoints.task_manager_metrics_path(names))

    def trigger_checkpoint(self, job_id: str) -> str:
        """Ask for a checkpoint of the kind that the job is configured for; returns the id of this request.

        Flink takes it in the background (since 1.17); it replies before that is done.
        """
        path = endpoints.job_path(job_id, "checkpoints")
        reply = self.transport.send_json("POST", path, json={"checkpointType": "CONFIGURED"})
        return str(reply.get("request-id", "")) if isinstance(reply, dict) else ""

    def resource_requirements(self, job_id: str) -> dict[str, Any]:
        """Return the bounds in force, vertex id -> {parallelism: {lowerBound, upperBound}} (adaptive scheduler)."""
        return self._object(endpoints.job_path(job_id, "resource-requirements"))

    def jobs(self) -> Any:
        """Return the list of jobs, ended ones included."""
        return self.transport.get_json("/jobs/overview")

    def job_manager_config(self) -> Any:
        """Return the cluster's configuration, a list of keys and values."""
        return self.transport.get_json("/jobmanager/config")

    def job_config(self, job_id: str) -> Any:
        """Return a job's execution configuration."""
        return self.transport.get_json(endpoints.job_path(job_id, "config"))

    def upper_bounds(self, job_id: str) -> dict[str, int]:
        """Return vertex id -> upper bound of its parallelism."""
        bounds = self.resource_requirements(job_id)
        return {vertex: int(bound["parallelism"]["upperBound"]) for vertex, bound in bounds.items()}

    def put_resource_requirements(
        self, job_id: str, upper_bounds: Mapping[str, int], lower_bounds: Mapping[str, int] | None = None
    ) -> None:
        """Set the bounds of every vertex, named by vertex id; sent once, never repeated.

        Args:
            job_id: of the job.
            upper_bounds: vertex id -> parallelism wanted.
            lower_bounds: vertex id -> lower bound; 1 for those not named.
        """
        path = endpoints.job_path(job_id, "resource-requirements")
        self.transport.send_json("PUT", path, json=endpoints.requirements_body(upper_bounds, lower_bounds))

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
        return endpoints.running_parallelism(self.job(job_id))

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
            ParallelismNotReached: the time limit passed; the message has the last observed parallelism.
        """
        started = clock()
        polls, observed = 0, "nothing running"
        while True:
            polls += 1
            try:
                running = self.running_parallelism(job_id)
                observed = str(running) if running else "not all vertices RUNNING"
            except FlinkUnreachable as error:
                running, observed = {}, str(error)
            if running and all(running.get(name) == wanted for name, wanted in targets.items()):
                return Confirmed(running, clock() - started, polls)
            if clock() - started >= timeout_s:
                raise ParallelismNotReached(
                    f"job {job_id}: wanted {dict(targets)}, after {timeout_s:g} s: {observed}; are there enough slots?"
                )
            sleep(poll_every_s)

    def upload_jar(self, jar: Path) -> str:
        """Upload a jar; returns the id under which the JobManager keeps it."""
        form = {"jarfile": (jar.name, jar.read_bytes(), "application/x-java-archive")}
        reply = self.transport.send_json("POST", "/jars/upload", fields=form)
        return str(reply["filename"]).rsplit("/", 1)[-1]

    def run_jar(self, jar_id: str, entry_class: str, arguments: Sequence[str]) -> str:
        """Start a job from an uploaded jar; returns its job id."""
        body = {"entryClass": entry_class, "programArgsList": list(arguments)}
        return str(self.transport.send_json("POST", f"/jars/{jar_id}/run", json=body)["jobid"])

    def cancel(self, job_id: str) -> None:
        """Cancel a job without a savepoint."""
        self.transport.send_json("PATCH", f"{endpoints.job_path(job_id)}?mode=cancel")

    def stop(self) -> None:
        """Give up what is under way in other threads, and refuse further requests."""
        self.transport.stop()

    def close(self) -> None:
        """Close the pooled connections."""
        self.transport.close()

    def _object(self, path: str) -> dict[str, Any]:
        return dict(self.transport.get_json(path))
