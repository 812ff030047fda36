"""The series of one cluster put together by job, task and subtask, each with the times of its samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from include.metric_sources.prometheus.client import Floats, Grid, PrometheusClient, Series
from include.metric_sources.prometheus.queries import Queries, metric_of
from include.settings.sources import Prometheus

_OF_OPERATOR = ("operator_id", "operator_name")


@dataclass(slots=True)
class Target:
    """What one process tells of one subtask, or of one job.

    Attributes:
        labels: without those of an operator.
        times_s: (steps,) when the sample of each step was scraped, NaN without one.
        values: metric -> (steps,).
    """

    labels: Mapping[str, str]
    times_s: Floats
    values: dict[str, Floats] = field(default_factory=dict)

    def steps(self, part: slice) -> Target | None:
        """Return some of the steps; None when they hold no sample."""
        times = self.times_s[part]
        if not np.isfinite(times).any():
            return None
        return Target(self.labels, times, {name: values[part] for name, values in self.values.items()})


@dataclass(slots=True)
class JobMeasurements:
    """The series of one job.

    Attributes:
        label: the job's name as labels show it.
        managers: what each JobManager tells of it.
        tasks: vertex id -> what each TaskManager tells of each attempt of a subtask.
    """

    job_id: str
    label: str
    managers: list[Target] = field(default_factory=list)
    tasks: dict[str, list[Target]] = field(default_factory=dict)


@dataclass(slots=True)
class Measurements:
    """All series of a cluster on a grid; ``cluster`` holds its own metrics, none when several clusters show them."""

    grid: Grid
    jobs: dict[str, JobMeasurements]
    cluster: dict[str, Floats]

    def steps(self, first: int, last: int) -> Measurements:
        """Return some of the steps, ``last`` included; targets and jobs without a sample in them are left out."""
        part = slice(first, last + 1)
        jobs = {}
        for job_id, job in self.jobs.items():
            managers = [cut for target in job.managers if (cut := target.steps(part)) is not None]
            tasks = {
                vertex: kept
                for vertex, targets in job.tasks.items()
                if (kept := [cut for target in targets if (cut := target.steps(part)) is not None])
            }
            if managers or tasks:
                jobs[job_id] = JobMeasurements(job_id, job.label, managers, tasks)
        start_s = self.grid.start_s + first * self.grid.step_s
        grid = Grid(start_s, start_s + (last - first) * self.grid.step_s, self.grid.step_s)
        return Measurements(grid, jobs, {name: values[part] for name, values in self.cluster.items()})


def fetch(client: PrometheusClient, server: Prometheus, grid: Grid) -> Measurements:
    """Ask for all series of a cluster.

    Raises:
        PrometheusError: one of the queries was not answered.
    """
    queries = Queries.of(server)

    def ask(query: str) -> list[Series]:
        return client.query_range(query, grid)

    names = server.names
    jobs: dict[str, JobMeasurements] = {}

    def job_of(labels: Mapping[str, str]) -> JobMeasurements:
        label = labels.get(names.job_label, "")
        return jobs.setdefault(labels["job_id"], JobMeasurements(labels["job_id"], label))

    managers = _targets(ask(queries.job_times), ("job_id",))
    for target in managers.values():
        job_of(target.labels).managers.append(target)
    _add_values(managers, ask(queries.jobs), lambda series: metric_of(series.labels["__name__"], server, names.job))
    tasks = _targets(ask(queries.task_times), ("job_id", "task_id", "subtask_index"))
    for target in tasks.values():
        job_of(target.labels).tasks.setdefault(target.labels["task_id"], []).append(target)
    _add_values(tasks, ask(queries.tasks), lambda series: metric_of(series.labels["__name__"], server, names.task))
    _add_values(tasks, ask(queries.operators), lambda series: _of_operator(series, server))
    return Measurements(grid, jobs, _of_cluster(ask(queries.cluster), server))


def _identity(labels: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((name, value) for name, value in labels.items() if name not in ("__name__", *_OF_OPERATOR))


def _targets(clocks: Iterable[Series], needed: tuple[str, ...]) -> dict[frozenset[tuple[str, str]], Target]:
    """Return the targets whose samples have times, by their labels; those that lack a needed label are passed over."""
    return {
        _identity(series.labels): Target(series.labels, series.values)
        for series in clocks
        if all(name in series.labels for name in needed)
    }


def _add_values(
    targets: Mapping[frozenset[tuple[str, str]], Target], found: Iterable[Series], name_of: Callable[[Series], str]
) -> None:
    for series in found:
        target = targets.get(_identity(series.labels))
        if target is not None and "__name__" in series.labels:
            target.values[name_of(series)] = series.values


def _of_operator(series: Series, server: Prometheus) -> str:
    """Return the id of an operator's metric as REST gives it: the operator's name in front."""
    operator = series.labels.get("operator_name", "").replace(":", "_")
    metric = metric_of(series.labels["__name__"], server, server.names.operator)
    return f"{operator}.{metric}" if operator else metric


def _of_cluster(found: Iterable[Series], server: Prometheus) -> dict[str, Floats]:
    by_metric: dict[str, list[Floats]] = {}
    for series in found:
        name = metric_of(series.labels.get("__name__", ""), server, server.names.cluster)
        by_metric.setdefault(name, []).append(series.values)
    # A new JobManager follows the old one; two at the same time are two clusters, whose slots are not one number.
    merged = {}
    for name, several in by_metric.items():
        together = np.stack(several)
        if (np.isfinite(together).sum(axis=0) > 1).any():
            return {}
        merged[name] = np.where(np.isfinite(together).any(axis=0), np.nansum(together, axis=0), np.nan)
    return merged
