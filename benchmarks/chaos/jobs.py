"""The three load jobs, as a person sees and handles them: directly at Flink, past the proxy."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks.waiting import wait_until
from cli.local_flink.cluster import LocalCluster
from cli.local_flink.load import LoadOptions, submit_load
from include.flink.client import FlinkClient, FlinkError
from include.flink.endpoints import TERMINAL_STATES, running_parallelism

REACTIVE = "orders"  # without plans: the reactive part of the controller follows its load
PLANNED = ("clicks", "billing")
_STARTS_S = 120.0

# Waiting costs no processor: one subtask of `enrich` does some 2,000 records a second.
OPTIONS = {
    REACTIVE: LoadOptions(REACTIVE, low_per_s=300, high_per_s=2600, compression=480, cost_us=10, wait_us=400),
    "clicks": LoadOptions("clicks", low_per_s=100, high_per_s=400, compression=480, cost_us=10, wait_us=200),
    "billing": LoadOptions("billing", low_per_s=100, high_per_s=300, compression=720, cost_us=10, wait_us=200),
}


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
    def client(self) -> FlinkClient:
        """Flink's own address."""
        return self._cluster.client

    def submit(self, job: str, parallelism: int = 1) -> None:
        """Submit a job and wait until it runs."""
        options = replace(OPTIONS[job], parallelism=parallelism)
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
