"""Requests to a Flink cluster: read a job, change the bounds of its parallelism."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from include.flink import endpoints
from include.flink.transport import Transport


class FlinkClient:
    """One cluster's REST API; see Transport for the arguments and what is raised."""

    def __init__(self, rest_url: str, **transport: Any) -> None:
        self.transport = Transport(rest_url, **transport)
        self.rest_url = self.transport.rest_url

    def job(self, job_id: str) -> dict[str, Any]:
        """Return a job's state, state timestamps and vertices."""
        return self._object(endpoints.job_path(job_id))

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

        A lower bound is 1 for those not named.
        """
        path = endpoints.job_path(job_id, "resource-requirements")
        self.transport.send_json("PUT", path, json=endpoints.requirements_body(upper_bounds, lower_bounds))

    def stop(self) -> None:
        """Give up what is under way in other threads, and refuse further requests."""
        self.transport.stop()

    def close(self) -> None:
        """Close the pooled connections."""
        self.transport.close()

    def _object(self, path: str) -> dict[str, Any]:
        return dict(self.transport.get_json(path))
