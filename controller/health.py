"""What a controller's process says of itself: whether its ticks come in time, and metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, Summary, generate_latest

from controller.tick import TickSummary

PREFIX = "tidewise_controller"


class ControllerHealth:
    """Takes each tick's summary; a server asks it from other threads.

    A process without a tick for ``late_after_s`` is late.
    """

    def __init__(self, monotonic: Callable[[], float], late_after_s: float) -> None:
        self._monotonic, self._late_after_s = monotonic, late_after_s
        self._ticked_s: float | None = None
        self._problems: dict[str, str] = {}
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        own: dict[str, Any] = {"registry": self.registry, "namespace": PREFIX}
        self._seconds = Summary("tick_seconds", "how long a tick takes", **own)
        self._last = Gauge("process_last_tick_timestamp_seconds", "when this process made its last tick", **own)
        self._jobs = Gauge("jobs", "jobs that are known", **own)
        self._seen = Gauge("jobs_polled", "jobs that were polled lately", **own)
        self._decisions = Counter("decisions", "jobs that met a decision, by verb and reason", ["decision"], **own)
        self._unused = Counter("unused_replies", "replies of Flink that could not be used", **own)
        self._left_alone = Gauge("cluster_left_alone", "1: the last tick left it alone", ["cluster"], **own)

    def note_tick(self, summary: TickSummary, now_s: float, late_after_s: float) -> None:
        """Take in what a tick did that ended at a time, epoch seconds."""
        self._late_after_s = late_after_s
        self._seconds.observe(summary.seconds)
        self._last.set(now_s)
        self._jobs.set(summary.jobs)
        self._seen.set(summary.seen)
        self._unused.inc(summary.faults)
        for name, count in summary.decisions.items():
            self._decisions.labels(name).inc(count)
        for name in {*self._problems, *summary.problems}:
            self._left_alone.labels(name).set(name in summary.problems)
        self._problems = dict(summary.problems)
        self._ticked_s = self._monotonic()

    def describe(self) -> tuple[bool, dict[str, object]]:
        """Return whether the last tick came in time, and what there is to say of it.

        A cluster that was left alone is no fault of the process: another controller may have its lease.
        """
        ticked_s = self._ticked_s
        age_s = None if ticked_s is None else round(self._monotonic() - ticked_s, 1)
        is_well = age_s is not None and age_s <= self._late_after_s
        status = "starting" if age_s is None else "ok" if is_well else "late"
        return is_well, {
            "status": status,
            "last_tick_age_s": age_s,
            "late_after_s": self._late_after_s,
            "clusters_left_alone": self._problems,
        }

    def metrics(self) -> bytes:
        """Return Prometheus' text exposition format."""
        return generate_latest(self.registry)
