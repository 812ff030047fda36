"""What Flink's REST API replies about a job double, field by field as it does about a real job."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.auto_weeks.job_double import CLUSTER, JobDouble
from lab.simulation.rest.events import build_exceptions_reply, build_overview_reply
from lab.simulation.rest.job_reply import build_job_reply, build_plan_reply
from lab.simulation.rest.job_timeline import JobTimeline, TimeOrigin
from lab.simulation.rest.lines import NAN_AFTER_START_S
from lab.simulation.rest.metrics import BUSY, aggregate_metrics, list_columns, list_metric_ids
from lab.simulation.rest.template import Ids

_CONFIG = {"jobmanager.scheduler": "adaptive", "execution.target": "kubernetes-application"}
_MEMORY = {
    "Status.JVM.Memory.Heap.Used": 2e8,
    "Status.JVM.Memory.Heap.Max": 5e8,
    "Status.JVM.GarbageCollector.All.TimeMsPerSecond": 20.0,
}
_AGGREGATES = ("min", "max", "avg", "sum")
_REMEMBERED = 3  # jobs in the list, the last among them


class Replies:
    """Replies about a job; the simulator's builders make them.

    Args:
        job: that runs.
    """

    def __init__(self, job: JobDouble) -> None:
        self._job = job

    def reply(self, path: str, asked: dict[str, list[str]], now_s: float) -> Any:
        """Return what is replied to GET; None where Flink knows of no such thing (404).

        Args:
            path: without its query.
            asked: the query.
            now_s: epoch seconds.
        """
        job, known = self._job, self._job.job_ids[-_REMEMBERED:]
        result: Any = None
        match path.strip("/").split("/"):
            case ["jobs", "metrics"]:
                result = []
            case ["overview"]:
                taken = max(job.running) if job.is_up and job.is_listed else 0
                free = max(job.slots.count - taken, 0)
                result = build_overview_reply(job.slots.managers, job.slots.count, free, int(taken > 0))
            case ["jobmanager", "config"]:
                result = [{"key": key, "value": value} for key, value in _CONFIG.items()]
            case ["taskmanagers", "metrics"]:
                result = [{"id": one, "min": _MEMORY[one], "max": _MEMORY[one]} for one in asked["get"][0].split(",")]
            case ["jobs", "overview"]:
                jobs = [self._describe(job_id, now_s) for job_id in known]
                result = {"jobs": [{key: one[key] for key in ("jid", "name", "state", "start-time")} for one in jobs]}
            case ["jobs", job_id] if job_id in known:
                result = self._describe(job_id, now_s)
            case ["jobs", job_id, "checkpoints"] if job_id in known:
                result = self._show_savepoint(self._timeline().checkpoints(0, job_id))
            case ["jobs", job_id, *leaf] if job.is_listed and job_id == job.job_id:
                result = self._reply_about_job(leaf, asked, now_s)
        return result

    def _timeline(self) -> JobTimeline:
        job = self._job
        origin = TimeOrigin(CLUSTER, round(1000 * job.start_s), (round(1000 * job.submitted_s),))
        return JobTimeline(job.fleet, job.recorder.samples, job.restarts, origin, 0)

    def _describe(self, job_id: str, now_s: float) -> dict[str, Any]:
        job = self._job
        ids, details = Ids(job_id, job.vertices), self._timeline().details(0, round(1000 * now_s))
        described = {**build_job_reply(job.spec, ids, details), **build_plan_reply(job.spec, ids, job.running)}
        is_alive = job_id == job.job_id and job.is_listed
        return described if is_alive else described | {"state": "FINISHED"}

    def _reply_about_job(self, leaf: list[str], asked: dict[str, list[str]], now_s: float) -> Any:
        job, timeline = self._job, self._timeline()
        result: Any = None
        match leaf:
            case ["plan"]:
                result = build_plan_reply(job.spec, Ids(job.job_id, job.vertices), job.running)
            case ["config"]:
                result = {"jid": job.job_id, "execution-config": {"user-config": {}}}
            case ["metrics"]:
                result = timeline.job_metrics(0, round(1000 * now_s))
            case ["exceptions"]:
                result = build_exceptions_reply(timeline.failures(0))
            case ["checkpoints", "config"]:
                interval_ms = round(1000 * job.spec.checkpoint_interval_s)
                result = {"mode": "exactly_once", "interval": interval_ms, "timeout": 600_000, "max_concurrent": 1}
            case ["resource-requirements"]:
                bounds = zip(job.vertices, job.lower, job.asked, strict=True)
                result = {one: {"parallelism": {"lowerBound": low, "upperBound": high}} for one, low, high in bounds}
            case ["vertices", vertex, "subtasks", "metrics"] if vertex in job.vertices:
                result = self._measure(job.vertices.index(vertex), asked)
        return result

    def _show_savepoint(self, reply: dict[str, Any]) -> dict[str, Any]:
        """Return a reply about checkpoints with the savepoint of a deployment, while it is in progress."""
        one = self._job.deployment
        if one is not None and not one.has_stopped:
            savepoint = {"id": 0, "status": "IN_PROGRESS", "is_savepoint": True, "checkpoint_type": "SAVEPOINT"}
            reply["history"] = [savepoint, *reply["history"]]
            reply["counts"]["in_progress"] += 1
        return reply

    def _measure(self, place: int, asked: dict[str, list[str]]) -> list[dict[str, Any]]:
        """Return the names of a vertex's metrics, or those that are asked for; none at all where one is not known."""
        job, operator = self._job, self._job.spec.operators[place]
        if not job.is_up:
            return []
        names = list_metric_ids(operator)
        if "get" not in asked:
            return [{"id": name} for name in names]
        wanted = asked["get"][0].split(",")
        if not set(wanted) <= set(names):
            return []
        values = aggregate_metrics(job.fleet, job.recorder.samples)[0, 0, place, list_columns(operator)]
        result: list[dict[str, Any]] = [
            {"id": name, **dict(zip(_AGGREGATES, row, strict=False))}
            for name, row in zip(names, np.round(values, 1).tolist(), strict=True)
        ]
        if self._timeline().running_for_s(0) < NAN_AFTER_START_S:
            result[BUSY] = {"id": names[BUSY], **dict.fromkeys(_AGGREGATES, "NaN")}
        return [one for one in result if one["id"] in wanted]
