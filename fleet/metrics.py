"""The fleet's facts in Prometheus' text exposition format, and the last windows of jobs that the controller polls.

Names after prometheus.io/docs/practices/naming: base units, the unit last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from fleet.facts import ClusterStatus, FleetStatus, JobStatus
from fleet.health import EVERYWHERE, Fault
from fleet.loads import LoadFact
from fleet.plans import select_due
from include.flink.job_states import RUNNING
from include.settings.limits import MODES

PLANNED_H = 24
HOLD_KINDS = ("person", "undo", "settings", "variable", "change")
WAITING_KINDS = ("approval", "block", "suspension")
Sample = tuple[Mapping[str, str], float | None]


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """A gauge and its samples; a sample without a value is left out: unknown is not zero."""

    name: str
    meaning: str
    samples: tuple[Sample, ...]


def list_families(facts: FleetStatus) -> list[MetricFamily]:
    """Return all metrics of a fleet, the same families whatever is known."""
    clusters = facts.clusters
    modes = Counter((job.cluster, job.mode) for job in facts.jobs if not job.has_ended)
    slots = Counter[str]()
    for job in facts.jobs:
        slots[job.cluster] += job.slots_now or 0
    planned = Counter(step.cluster for step in select_due(facts, PLANNED_H))
    waiting = Counter((one.cluster, one.kind) for one in facts.waiting)
    holds = Counter(one.kind for one in facts.holds)
    trained = facts.models.trained_at_s
    pairs = [(one.cluster, mode) for one in clusters for mode in MODES]
    kinds = [(one.cluster, kind) for one in clusters for kind in WAITING_KINDS]

    def of_clusters(name: str, meaning: str, read: Callable[[ClusterStatus], float | None]) -> MetricFamily:
        return _gauge(name, meaning, [({"cluster": one.cluster}, read(one)) for one in clusters])

    return [
        _gauge("facts_timestamp_seconds", "when these figures were read", [({}, facts.at_s)]),
        of_clusters("controller_last_tick_timestamp_seconds", "last tick of the controller",
                    lambda one: one.ticked_at_s),
        of_clusters("plan_as_of_timestamp_seconds", "as-of of the newest plan", lambda one: one.plan_as_of_s),
        of_clusters("metrics_until_timestamp_seconds", "end of the last ingested hour with lines",
                    lambda one: one.metrics_until_s),
        _gauge("models_trained_timestamp_seconds", "as-of of the training of the models in use", [({}, trained)]),
        of_clusters("ingested_lines", "lines of the last day of ingestion", lambda one: one.lines),
        of_clusters("quarantined_lines", "lines of that day in quarantine", lambda one: one.quarantined),
        of_clusters("refused_files", "files of that day that could not be read to their end, or are misplaced",
                    lambda one: one.quarantined_files),
        of_clusters("forecast_coverage_q90_ratio", "share of past load at or below the forecasts' q90",
                    lambda one: one.coverage_q90),
        _gauge("jobs", "jobs by mode", [({"cluster": one, "mode": mode}, modes[one, mode]) for one, mode in pairs]),
        of_clusters("slots", "slots that jobs run with", lambda one: slots[one.cluster]),
        of_clusters("planned_steps", f"steps that plans send within {PLANNED_H} h", lambda one: planned[one.cluster]),
        _gauge("waiting", "what waits for a person, by kind",
               [({"cluster": one, "kind": kind}, waiting[one, kind]) for one, kind in kinds]),
        _gauge("holds", "holds by kind", [({"kind": kind}, holds[kind]) for kind in HOLD_KINDS]),
        *_list_windows(facts),
        _gauge("faults", "jobs or clusters with a fault that needs a person", _list_faults(facts)),
    ]  # fmt: skip


def _list_windows(facts: FleetStatus) -> list[MetricFamily]:
    """Return what is known of each job that is polled: its last window, forecast, state, lateness, request."""
    polled = [job for job in facts.jobs if job.window is not None]

    def of_jobs(name: str, meaning: str, read: Callable[[JobStatus], float | None]) -> MetricFamily:
        return _gauge(f"job_{name}", meaning, [({"cluster": one.cluster, "job": one.job}, read(one)) for one in polled])

    def of_windows(name: str, meaning: str, read: Callable[[LoadFact], float | None]) -> MetricFamily:
        return of_jobs(name, meaning, lambda one: None if one.window is None else read(one.window))

    return [
        of_windows("window_end_timestamp_seconds", "end of the last window that was polled", lambda one: one.until_s),
        of_windows("load_records_per_second", "records that arrive at all sources", lambda one: one.load_per_s),
        of_windows("busy_ratio", "busy share of the busiest operator", lambda one: one.busy_share),
        of_windows("backlog_records", "backlog of all sources", lambda one: one.pending_records),
        of_windows("backlog_age_seconds", "age of the oldest record that waits", lambda one: one.lag_s),
        of_jobs("slots", "slots that it runs with", lambda one: one.slots_now),
        of_jobs("forecast_q90_records_per_second", "highest 90% forecast of the plan's next step",
                lambda one: one.steps[0].load_q90_per_s if one.steps else None),
        of_jobs("running", "1: Flink says that it runs", lambda one: one.state == RUNNING),
        of_jobs("late_since_timestamp_seconds", "since when it is late",
                lambda one: None if one.last_decision is None else one.last_decision.late_since_s),
        of_jobs("last_request_timestamp_seconds", "when a rescale of it was sent last",
                lambda one: None if one.last_rescale is None else one.last_rescale.at_s),
    ]  # fmt: skip


def format_metrics(facts: FleetStatus) -> str:
    """Return the text that a scrape or node_exporter's textfile collector takes."""
    registry = CollectorRegistry()
    registry.register(_Gauges(list_families(facts)))
    return generate_latest(registry).decode()


class _Gauges(Collector):
    def __init__(self, families: Iterable[MetricFamily]) -> None:
        self._families = families

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for family in self._families:
            names = sorted({name for labels, _ in family.samples for name in labels})
            gauge = GaugeMetricFamily(family.name, family.meaning, labels=names)
            for labels, value in family.samples:
                if value is not None:
                    gauge.add_metric([labels[name] for name in names], value)
            yield gauge


def _list_faults(facts: FleetStatus) -> list[Sample]:
    counted = Counter((one.name, one.scope.partition("/")[0]) for one in facts.health if one.needs_person)
    scopes = [EVERYWHERE, *(one.cluster for one in facts.clusters)]
    known = [(str(fault), scope) for fault in Fault for scope in scopes]
    return [({"fault": fault, "cluster": scope}, float(counted[fault, scope])) for fault, scope in known]


def _gauge(name: str, meaning: str, samples: Iterable[Sample]) -> MetricFamily:
    numbers = ((labels, None if value is None else float(value)) for labels, value in samples)
    return MetricFamily(f"tidewise_{name}", meaning, tuple(numbers))
