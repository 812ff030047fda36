"""The series of one cluster put together by job, task and subtask, each with the times of its samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from include.metric_sources.prometheus.client import (
    Floats,
    PrometheusClient,
    PrometheusError,
    PrometheusPartialError,
    PrometheusTimesUnknownError,
    QueryRange,
    Series,
)
from include.metric_sources.prometheus.doubles import find_double
from include.metric_sources.prometheus.queries import CLOCK_OF_JOB, CLOCK_OF_TASK, Queries, metric_of
from include.metric_sources.prometheus.source_operators import add_operators
from include.metric_sources.prometheus.targets import Target
from include.settings.sources import Prometheus

_LONGEST_LOOKBACK_S = 86_400.0  # a server's lookback is minutes, of pushed series perhaps hours


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
class ClusterMeasurements:
    """All series of a cluster on a grid; ``cluster`` holds its own metrics, none when several clusters show them."""

    grid: QueryRange
    jobs: dict[str, JobMeasurements]
    cluster: dict[str, Floats]

    def steps(self, first: int, last: int) -> ClusterMeasurements:
        """Return some of the steps, ``last`` included; targets and jobs without a sample in them are left out."""
        part = slice(first, last + 1)
        jobs = {}
        for job_id, job in self.jobs.items():
            managers = [cut for target in job.managers if (cut := target.steps(part)) is not None]
            tasks = {
                vertex: retained
                for vertex, targets in job.tasks.items()
                if (retained := [cut for target in targets if (cut := target.steps(part)) is not None])
            }
            if managers or tasks:
                jobs[job_id] = JobMeasurements(job_id, job.label, managers, tasks)
        start_s = self.grid.start_s + first * self.grid.step_s
        grid = QueryRange(start_s, start_s + (last - first) * self.grid.step_s, self.grid.step_s)
        return ClusterMeasurements(grid, jobs, {name: values[part] for name, values in self.cluster.items()})


def fetch(client: PrometheusClient, server: Prometheus, grid: QueryRange) -> ClusterMeasurements:
    """Ask for all series of a cluster; queries whose answers do not agree are asked again, a few times.

    Raises:
        PrometheusPartialError: an answer is partial, or lacks series that another one shows.
        PrometheusError: one of the queries was not answered, or two clusters are in the answers.
    """
    return client.ask_again(lambda: _fetch(client, server, grid))


def _fetch(client: PrometheusClient, server: Prometheus, grid: QueryRange) -> ClusterMeasurements:
    queries = Queries.of(server)

    def ask(query: str) -> list[Series]:
        return client.query_range(query, grid)

    names = server.names
    jobs: dict[str, JobMeasurements] = {}

    def job_of(labels: Mapping[str, str]) -> JobMeasurements:
        label = labels.get(names.job_label, "")
        return jobs.setdefault(labels["job_id"], JobMeasurements(labels["job_id"], label))

    managers = _targets(_clocks(client.place, ask(queries.job_times), grid), ("job_id",))
    for target in managers.values():
        job_of(target.labels).managers.append(target)
    _add_values(managers, ask(queries.jobs), lambda series: metric_of(series.labels["__name__"], server, names.job))
    _check_agreement(client.place, managers, CLOCK_OF_JOB)
    tasks = _targets(_clocks(client.place, ask(queries.task_times), grid), ("job_id", "task_id", "subtask_index"))
    for target in tasks.values():
        job_of(target.labels).tasks.setdefault(target.labels["task_id"], []).append(target)
    _add_values(tasks, ask(queries.tasks), lambda series: metric_of(series.labels["__name__"], server, names.task))
    _check_agreement(client.place, tasks, CLOCK_OF_TASK)
    add_operators(tasks, [*ask(queries.backlogs), *ask(queries.sources)], server)
    for job in jobs.values():
        double = find_double(job.job_id, job.managers, job.tasks, names.job_label, server.max_sample_age_s)
        if double:
            raise PrometheusError(
                f"{client.place}: {double}, so nothing is written; select one cluster with matchers there"
            )
    return ClusterMeasurements(grid, jobs, _of_cluster(ask(queries.cluster), server))


def _clocks(place: str, result: Iterable[Series], grid: QueryRange) -> list[Series]:
    """Return series of times without those at which no sample can have been scraped.

    Raises:
        PrometheusTimesUnknownError: not one sample has a time: the server's ``timestamp()`` does not tell it.
    """
    clocks = []
    reported = usable = 0
    for series in result:
        age_s = grid.times_s - series.values
        is_time = (age_s >= -grid.step_s) & (age_s <= _LONGEST_LOOKBACK_S)
        reported += int(np.isfinite(series.values).sum())
        usable += int(is_time.sum())
        clocks.append(Series(series.labels, np.where(is_time, series.values, np.nan)))
    if reported and not usable:
        raise PrometheusTimesUnknownError(place)
    return clocks


def _identity(labels: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((name, value) for name, value in labels.items() if name != "__name__")


def _targets(clocks: Iterable[Series], needed: tuple[str, ...]) -> dict[frozenset[tuple[str, str]], Target]:
    """Return the targets whose samples have times, by their labels; those that lack a needed label are passed over."""
    return {
        _identity(series.labels): Target(series.labels, series.values)
        for series in clocks
        if all(name in series.labels for name in needed) and np.isfinite(series.values).any()
    }


def _add_values(
    targets: Mapping[frozenset[tuple[str, str]], Target], result: Iterable[Series], name_of: Callable[[Series], str]
) -> None:
    for series in result:
        target = targets.get(_identity(series.labels))
        if target is not None and "__name__" in series.labels:
            target.values[name_of(series)] = series.values


def _check_agreement(place: str, targets: Mapping[frozenset[tuple[str, str]], Target], clock: str) -> None:
    """Refuse values of a metric that lack series of which the same server has just told the times.

    Raises:
        PrometheusPartialError: some are lacking.
    """
    silent = sum(clock not in target.values for target in targets.values())
    if silent:
        raise PrometheusPartialError(
            place, f"it gives the times of {len(targets)} series of {clock}, and no values of {silent} of them"
        )


def _of_cluster(result: Iterable[Series], server: Prometheus) -> dict[str, Floats]:
    by_metric: dict[str, list[Floats]] = {}
    for series in result:
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
