"""The three load jobs, as a person sees and handles them: directly at Flink, past the proxy."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.waiting import wait_until
from include.atomic_write import replace_atomically
from include.flink.endpoints import job_path
from include.flink.faults import FlinkError
from include.flink.job_states import TERMINAL_STATES
from lab.local_flink.cluster import LocalCluster
from lab.local_flink.job_client import JobClient, running_parallelism
from lab.local_flink.load import LoadOptions, LoadTopology, submit_load

REACTIVE = "orders"  # without plans: the reactive part of the controller follows its load
PLANNED = ("clicks", "billing")
_STARTS_S = 120.0

# Waiting costs no processor: one subtask of `enrich` does some 2,000 records a second.
_LOADS = {
    REACTIVE: LoadOptions(REACTIVE, low_per_s=300, high_per_s=2600, compression=480, cost_us=10, wait_us=400),
    "clicks": LoadOptions("clicks", low_per_s=100, high_per_s=400, compression=480, cost_us=10, wait_us=200),
    "billing": LoadOptions("billing", low_per_s=100, high_per_s=300, compression=720, cost_us=10, wait_us=200),
}
# Few customers, so that records come to the sink soon.
OPTIONS = {job: replace(load, form=LoadTopology.COUNTED, customers=100) for job, load in _LOADS.items()}


@dataclass(frozen=True, slots=True)
class PersonChange:
    """A change that a person made at Flink; ``is_change`` is whether it differs from what was in force."""

    job: str
    bounds: Mapping[str, int]
    at_s: float
    is_change: bool


class Jobs:
    """The jobs of a cluster by name; another job id after each submission."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self.ids: dict[str, str] = {}
        self.all_ids: dict[str, LoadOptions] = {}
        self.changes: list[PersonChange] = []

    @property
    def client(self) -> JobClient:
        """Flink's own address."""
        return self._cluster.client

    def submit(self, job: str, parallelism: int = 1, *, checkpoints: bool = True) -> None:
        """Submit a job and wait until it runs."""
        behaviour = self._behaviour_file(job)
        options = replace(OPTIONS[job], parallelism=parallelism, checkpoints=checkpoints, behaviour=behaviour)
        job_id = submit_load(self.client, self._cluster.work_dir, options)
        self.ids[job], self.all_ids[job_id] = job_id, options
        wait_until(lambda: self.running(job), _STARTS_S, f"{job} runs")

    def submit_all(self, parallelism: Mapping[str, int] | None = None) -> None:
        """Submit all jobs."""
        for job in OPTIONS:
            self.submit(job, (parallelism or {}).get(job, 1))

    def cancel(self, job: str) -> None:
        """Cancel a job and wait until it has ended."""
        job_id = self.ids[job]
        self.client.cancel(job_id)
        wait_until(lambda: self.client.job(job_id)["state"] in TERMINAL_STATES, 60, f"{job} has ended")

    def running(self, job: str) -> dict[str, int]:
        """Return operator -> parallelism; empty unless all of it runs, or when Flink does not reply."""
        try:
            return running_parallelism(self.client.job(self.ids[job]))
        except FlinkError:
            return {}

    def requested(self, job: str) -> dict[str, int]:
        """Return operator -> upper bound in force; empty when Flink does not reply."""
        try:
            names = self.names(job)
            return {names[vertex]: bound for vertex, bound in self.client.upper_bounds(self.ids[job]).items()}
        except FlinkError:
            return {}

    def names(self, job: str) -> dict[str, str]:
        """Return vertex id -> operator."""
        return {vertex["id"]: vertex["name"] for vertex in self.client.job(self.ids[job])["vertices"]}

    def change(self, job: str, target: Mapping[str, int]) -> None:
        """Change a job as a person does."""
        before = self.client.upper_bounds(self.ids[job])
        vertices = {name: vertex for vertex, name in self.names(job).items()}
        bounds = {**before, **{vertices[name]: count for name, count in target.items()}}
        self.client.put_resource_requirements(self.ids[job], bounds)
        self.changes.append(PersonChange(job, bounds, time.time(), bounds != before))

    def change_lower(self, job: str, lower: int) -> None:
        """Set the lower bound of each vertex as a person does, and leave the upper bounds as they are."""
        path = job_path(self.ids[job], "resource-requirements")
        bounds = self.client.resource_requirements(self.ids[job])
        before = _lower_of(bounds)
        for one in bounds.values():
            one["parallelism"]["lowerBound"] = min(lower, one["parallelism"]["upperBound"])
        self.client.transport.send_json("PUT", path, json=bounds)
        is_change = _lower_of(bounds) != before  # a job at 1 keeps its lower bound of 1
        self.changes.append(PersonChange(job, self.client.upper_bounds(self.ids[job]), time.time(), is_change))

    def lower_bounds(self, job: str) -> dict[str, int]:
        """Return vertex id -> lower bound in force."""
        return _lower_of(self.client.resource_requirements(self.ids[job]))

    @contextmanager
    def behaving(self, job: str, **what: object) -> Iterator[None]:
        """Let a job do something wrong: ``fail_at_parallelism`` or ``snapshot_ms``."""
        file = self._behaviour_file(job)
        with replace_atomically(file) as temporary:
            temporary.write_text("".join(f"{key}={str(value).lower()}\n" for key, value in what.items()))
        try:
            yield
        finally:
            file.unlink()

    @contextmanager
    def breaking_checkpoints(self, job: str) -> Iterator[None]:
        """Let a job's checkpoints fail: a file stands in the place of their folder."""
        folder = self._cluster.work_dir / "checkpoints" / self.ids[job]
        aside = folder.with_name(f"{folder.name}.aside")
        folder.rename(aside)
        folder.touch()
        try:
            yield
        finally:
            folder.unlink()
            aside.rename(folder)

    def begin_savepoint(self, job: str) -> str:
        """Ask for a savepoint as a person does; returns the id of the request."""
        body = {"target-directory": (self._cluster.work_dir / "savepoints").as_uri(), "cancel-job": False}
        path = job_path(self.ids[job], "savepoints")
        return str(self.client.transport.send_json("POST", path, json=body)["request-id"])

    def savepoint_state(self, job: str, request_id: str) -> tuple[str, str]:
        """Return ``IN_PROGRESS`` or ``COMPLETED``, and why it failed (empty: it did not)."""
        result: dict[str, Any] = self.client.transport.get_json(job_path(self.ids[job], f"savepoints/{request_id}"))
        cause = (result.get("operation") or {}).get("failure-cause") or {}
        return str(result["status"]["id"]), str(cause.get("class", "unknown cause")) if cause else ""

    def shows_savepoint(self, job: str) -> bool:
        """Whether Flink lists a savepoint of a job as in progress."""
        history = self.client.checkpoints(self.ids[job])["history"]
        return any(one["is_savepoint"] and one["status"] == "IN_PROGRESS" for one in history)

    def checkpoint_counts(self, job: str) -> dict[str, int]:
        """Return how many checkpoints were completed, have failed and are in progress."""
        return {name: int(count) for name, count in self.client.checkpoints(self.ids[job])["counts"].items()}

    def _behaviour_file(self, job: str) -> Path:
        return self._cluster.work_dir / f"behaviour-{job}.properties"


def _lower_of(bounds: Mapping[str, Any]) -> dict[str, int]:
    """Return vertex id -> lower bound of what Flink tells of a job's requirements."""
    return {vertex: int(one["parallelism"]["lowerBound"]) for vertex, one in bounds.items()}
