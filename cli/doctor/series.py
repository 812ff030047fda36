"""Checks of a Prometheus-compatible server: which series of Flink's reporter are missing for which job."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from cli.doctor.findings import Finding, error, list_names, ok, warning
from cli.doctor.probe import Probe, ProbeError
from include.metric_sources.prometheus.client import WHOLE_ONLY, find_partial
from include.settings.sources import MetricNames
from models.scheduling.figures import format_count

PART = "Prometheus"
ENOUGH_DAYS = 21
# What rates, capacity, parallelism and restarts come from; without one of them a job cannot be observed.
_TASK_METRICS = ("numRecordsIn", "numRecordsOut", "busyTimeMsPerSecond", "backPressuredTimeMsPerSecond")


@dataclass(frozen=True, slots=True)
class SeriesNames:
    """What to look for on a server.

    Attributes:
        matchers: that select the cluster.
    """

    names: MetricNames = field(default_factory=MetricNames)
    matchers: tuple[str, ...] = ()

    def _metric(self, scope: str, metric: str) -> str:
        return f"{self.names.prefix}{scope}_{metric}"

    @property
    def of_tasks(self) -> tuple[str, ...]:
        """Those of TaskManagers without which a job cannot be observed."""
        return tuple(self._metric(self.names.task, name) for name in _TASK_METRICS)

    @property
    def needed(self) -> tuple[str, ...]:
        """Those without which a job cannot be observed."""
        return (*self.of_tasks, self._metric(self.names.job, "numRestarts"))

    @property
    def useful(self) -> tuple[str, ...]:
        """Those without which backlog or checkpoints are not known."""
        backlog = self._metric(self.names.operator, "pendingRecords")
        return (backlog, self._metric(self.names.job, "lastCheckpointDuration"))

    @property
    def labels(self) -> tuple[str, ...]:
        """By which subtasks are told apart."""
        return (self.names.job_label, "task_id", "subtask_index")

    def select(self, name: str) -> str:
        """Return the selector of a metric."""
        return f"{name}{{{','.join(self.matchers)}}}" if self.matchers else name


FLINKS = SeriesNames()
"""Those that Flink's reporter gives."""


def check_series(probe: Probe, names: SeriesNames = FLINKS) -> list[Finding]:
    """Return which series are missing of the jobs that a server knows; the probe has its prefix."""
    try:
        result = {name: _count_by_job(probe, names, name) for name in (*names.needed, *names.useful)}
    except ProbeError as problem:
        return [error(PART, problem.check, str(problem), problem.remedy)]
    except SeriesError as problem:
        return [error(PART, "address", str(problem), problem.remedy)]
    known = {job for counts in result.values() for job in counts}
    first = ok(PART, "address", f"{probe.url} replies, with {format_count(len(known), 'job')}")
    if not known:
        remedy = (
            "set metrics.reporter.prom.factory.class in Flink's configuration, and scrape JobManager and TaskManagers"
        )
        return [first, error(PART, "series", f"no series of Flink's reporter ({names.needed[0]})", remedy)]
    judged = [_judge_job(job, names, result) for job in sorted(known)]
    return [first, check_retention(probe), *judged, _check_labels(probe, names)]


def check_retention(probe: Probe) -> Finding:
    """Say for how long the server keeps samples, where it tells."""
    try:
        reply = probe.get("/api/v1/status/runtimeinfo")
    except ProbeError as problem:  # a gateway may drop what is no query
        return warning(PART, "retention", f"not told: {problem}", "nothing, if queries are all that it lets through")
    reported = None
    if reply.is_ok and isinstance(reply.payload, dict) and isinstance(reply.payload.get("data"), dict):
        reported = reply.payload["data"].get("storageRetention")
    if not reported:
        return ok(PART, "retention", "not told by this server")
    days = re.fullmatch(r"(\d+)d.*", str(reported))
    if days is not None and int(days[1]) < ENOUGH_DAYS:
        remedy = f"raise --storage.tsdb.retention.time to {ENOUGH_DAYS}d, or backfill before it is gone"
        return warning(PART, "retention", f"{reported}: forecasts know no weekday below three weeks", remedy)
    return ok(PART, "retention", str(reported))


class SeriesError(RuntimeError):
    """The server refuses a query; ``remedy`` says what to do."""

    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(text)
        self.remedy = remedy


def query(probe: Probe, expression: str) -> list[dict[str, Any]]:
    """Return the result of an instant query.

    Raises:
        ProbeError: no reply.
        SeriesError: the server refuses, or is no Prometheus.
    """
    reply = probe.get(f"/api/v1/query?{urlencode({'query': expression} | WHOLE_ONLY)}")
    if reply.status in {401, 403}:
        raise SeriesError(f"{probe.url} refuses with {reply.status}", "give its user or tenant the right to query")
    if not reply.is_ok or not isinstance(reply.payload, dict) or reply.payload.get("status") != "success":
        raise SeriesError(
            f"{probe.url}/api/v1/query replies with {reply.status}, and not as Prometheus does",
            "write the address with the prefix (/prometheus for Mimir)",
        )
    partial = find_partial(reply.payload)
    if partial is not None:
        raise SeriesError(f"{probe.url} gives partial answers ({partial})", "bring back what it names")
    return list(reply.payload["data"]["result"])


def _count_by_job(probe: Probe, names: SeriesNames, name: str) -> dict[str, int]:
    label = names.names.job_label
    result = query(probe, f"count by ({label}) ({names.select(name)})")
    return {str(one["metric"].get(label, "")): int(float(one["value"][1])) for one in result}


def _judge_job(job: str, names: SeriesNames, result: Mapping[str, Mapping[str, int]]) -> Finding:
    check = f"series of {job}"
    missing = [name for name in names.needed if not result[name].get(job)]
    if missing:
        text = f"missing: {', '.join(missing)}"
        return error(PART, check, text, _remedy_for(missing, names))
    lacking = [name for name in names.useful if not result[name].get(job)]
    if lacking:
        return warning(
            PART, check, f"missing: {', '.join(lacking)}", "backlogs or checkpoint ages are not known without"
        )
    return ok(PART, check, f"all {len(names.needed) + len(names.useful)} are there")


def _remedy_for(missing: Sequence[str], names: SeriesNames) -> str:
    if set(missing) == set(names.of_tasks):
        return "scrape the TaskManagers, too: each has a port of its own (metrics.reporter.prom.port)"
    if missing == [names.needed[-1]]:
        return "scrape the JobManager, too"
    return "is a relabelling or metrics.reporter.prom.filter.excludes dropping them?"


def _check_labels(probe: Probe, names: SeriesNames) -> Finding:
    try:
        result = query(probe, f"count by ({', '.join(names.labels)}) ({names.select(names.needed[0])})")
    except (ProbeError, SeriesError) as problem:
        return error(PART, "labels", str(problem), "run the doctor again")
    missing = [label for label in names.labels if any(label not in one["metric"] for one in result)]
    if missing:
        remedy = "leave Flink's labels in the scrape configuration's relabelling"
        return error(PART, "labels", f"series lack {list_names(missing)}: subtasks cannot be told apart", remedy)
    return ok(PART, "labels", ", ".join(names.labels))
