"""Measurements written as raw lines of the kinds that REST gives; what the series do not tell is left out.

No reply of kind ``exceptions`` can be made: the series do not tell why a job stopped.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from include.flink.endpoints import AGGREGATES, JOB_METRICS
from include.flink.job_states import CHECKPOINT_COMPLETED, RUNNING
from include.flink.raw_format import Endpoint, RawRecord
from include.metric_sources.prometheus.client import Floats
from include.metric_sources.prometheus.graphs import Graph, GraphRegistry, as_label
from include.metric_sources.prometheus.job_runs import JobSteps, RecordedRun, follow_job
from include.metric_sources.prometheus.measurements import ClusterMeasurements, JobMeasurements
from include.metric_sources.prometheus.vertex_steps import VertexSteps, aggregate, find_parallelism, join_subtasks

_SOURCE_LABEL, _SOURCE_NAME = "Source:_", "Source: "
KnownRuns = Mapping[str, Sequence[RecordedRun]]


class ReplyWriter:
    """Writes the raw lines of one cluster.

    Args:
        cluster: its name.
        book: graphs.
        max_age_s: an older sample is none.
        hold_s: a run is told only when it is this old: of a younger one not every TaskManager may have been scraped.
        every_poll: whether a job's own metrics are told at every step, or once for each span.
    """

    def __init__(
        self, cluster: str, book: GraphRegistry, *, max_age_s: float, hold_s: float = 0.0, every_poll: bool = False
    ) -> None:
        self._cluster, self._book = cluster, book
        self._max_age_s, self._hold_ms, self._every_poll = max_age_s, 1000 * hold_s, every_poll
        self._told_hour: dict[str, int] = {}  # job id -> hour in which its plan and metrics were told last

    def forget(self, job_ids: Container[str]) -> None:
        """Forget all jobs but these."""
        self._told_hour = {job_id: hour for job_id, hour in self._told_hour.items() if job_id in job_ids}

    def write(self, result: ClusterMeasurements, start_ms: int, end_ms: int, known: KnownRuns) -> Iterator[RawRecord]:
        """Yield the lines of the samples that were scraped in ``[start_ms, end_ms)``, cluster first, then job by job.

        The measurements go from ``start_ms`` to a while after ``end_ms``, epoch milliseconds.
        """
        yield from self._overview(result, start_ms, end_ms)
        for job_id in sorted(result.jobs):
            job = _JobWriter(self, result.jobs[job_id], result.grid.times_s, known.get(job_id, ()))
            for record in job.records():
                if start_ms <= record.observed_at_ms < end_ms:
                    yield record

    def _overview(self, result: ClusterMeasurements, start_ms: int, end_ms: int) -> Iterator[RawRecord]:
        fields = {
            "taskmanagers": "numRegisteredTaskManagers",
            "slots-total": "taskSlotsTotal",
            "slots-available": "taskSlotsAvailable",
            "jobs-running": "numRunningJobs",
        }
        for step, at_s in enumerate(result.grid.times_s):
            reported = (
                (field, result.cluster[metric][step]) for field, metric in fields.items() if metric in result.cluster
            )
            body = {field: int(value) for field, value in reported if np.isfinite(value)}
            at_ms = round(1000 * at_s)
            if body and start_ms <= at_ms < end_ms:
                yield self.record(at_ms, Endpoint.OVERVIEW, "jobmanager", body)

    def record(
        self,
        at_ms: int,
        kind: Endpoint,
        scope: str,
        body: Any,
        *,
        job_id: str | None = None,
        vertex_id: str | None = None,
    ) -> RawRecord:
        """Return a raw line; ``endpoint`` names the query that its values came from."""
        labels = [f'{name}="{value}"' for name, value in (("job_id", job_id), ("task_id", vertex_id)) if value]
        endpoint = f"prometheus:/api/v1/query_range?query={scope}{{{','.join(labels)}}}"
        text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        return RawRecord(at_ms, self._cluster, str(kind), endpoint, job_id, vertex_id, 200, text)


class _JobWriter:
    """Writes the lines of one job."""

    def __init__(self, writer: ReplyWriter, job: JobMeasurements, grid_s: Floats, known: Sequence[RecordedRun]) -> None:
        self._writer, self._job, self._known = writer, job, known
        self._steps: JobSteps = follow_job(job, grid_s, writer._max_age_s, known)
        self._subtasks = {
            vertex: join_subtasks(targets, grid_s, self._steps.running_ms, writer._max_age_s)
            for vertex, targets in sorted(job.tasks.items())
        }
        self._parallelism = {
            vertex: find_parallelism(subtasks, self._steps.running_ms, self._known_parallelism(vertex))
            for vertex, subtasks in self._subtasks.items()
        }
        self._graph: Graph | None = writer._book.find(job.job_id, job.label, self._subtasks)

    def _known_parallelism(self, vertex: str) -> dict[int, int]:
        return {run.running_ms: run.parallelism[vertex] for run in self._known if vertex in run.parallelism}

    @property
    def _name(self) -> str:
        graph = self._graph
        is_own = graph is not None and (graph.job_id == self._job.job_id or as_label(graph.name) == self._job.label)
        return graph.name if graph is not None and is_own else self._job.label

    def _vertices(self) -> dict[str, dict[str, Any]]:
        if self._graph is not None:
            return {
                vertex: {"id": vertex, "name": name, **({"maxParallelism": most} if most is not None else {})}
                for vertex, (name, most) in self._graph.vertices.items()
            }
        known = {vertex for run in self._known for vertex in run.parallelism}
        return {vertex: {"id": vertex, "name": self._label_of(vertex)} for vertex in sorted({*self._subtasks, *known})}

    def _label_of(self, vertex: str) -> str:
        targets = self._job.tasks.get(vertex, [])
        label = next((target.labels["task_name"] for target in targets if target.labels.get("task_name")), vertex)
        # Flink begins the name of a source with this; the reporter has replaced the blank.
        return _SOURCE_NAME + label.removeprefix(_SOURCE_LABEL) if label.startswith(_SOURCE_LABEL) else label

    def records(self) -> Iterator[RawRecord]:
        """Yield all lines of the job, in order of time within a kind."""
        vertices = self._vertices()
        if vertices:
            yield from self._job_lines(vertices)
        yield from self._checkpoints()
        for vertex, subtasks in self._subtasks.items():
            starts = self._steps.running_ms
            runs = self._parallelism[vertex]
            parallelism = np.array([runs.get(int(at), 0) if np.isfinite(at) else 0 for at in starts], np.int64)
            yield from self._vertex_lines(vertex, aggregate(subtasks, parallelism))

    def _job_lines(self, vertices: Mapping[str, dict[str, Any]]) -> Iterator[RawRecord]:
        steps, last_ms, restarts, reported_hour = self._steps, 0, -1.0, self._writer._told_hour
        for step in np.flatnonzero(np.isfinite(steps.times_s)).tolist():
            at_ms = round(1000 * steps.times_s[step])
            if at_ms <= last_ms:
                continue
            body = self._job_reply(step, at_ms, vertices)
            if body is None:
                continue
            last_ms = at_ms
            yield self._record(at_ms, Endpoint.JOB, "jobmanager_job", body)
            counted = float(steps.values.get("numRestarts", np.full(len(steps.times_s), -1.0))[step])
            hour = at_ms // 3_600_000
            is_first = reported_hour.get(self._job.job_id) != hour
            if self._graph is not None and is_first and body["state"] == RUNNING:
                plan = {"jid": self._job.job_id, "name": self._name, "nodes": self._graph.nodes}
                yield self._record(at_ms, Endpoint.PLAN, "jobmanager_job", {"plan": plan})
            if is_first or counted != restarts or self._writer._every_poll:
                yield self._record(at_ms, Endpoint.JOB_METRICS, "jobmanager_job", self._job_metrics(step))
            restarts, reported_hour[self._job.job_id] = counted, hour

    def _job_reply(self, step: int, at_ms: int, vertices: Mapping[str, dict[str, Any]]) -> dict[str, Any] | None:
        """Return the reply of ``/jobs/:jobid``; None while nothing tells the parallelism of a run."""
        state, running_ms = self._steps.states[step], float(self._steps.running_ms[step])
        times: dict[str, int] = {}
        reported = [dict(vertex) for vertex in vertices.values()]
        if state == RUNNING:
            if not np.isfinite(running_ms) or at_ms - running_ms < self._writer._hold_ms:
                return None
            times[RUNNING] = int(running_ms)
            for vertex in reported:
                parallelism = self._parallelism.get(vertex["id"], {}).get(int(running_ms))
                parallelism = parallelism or self._known_parallelism(vertex["id"]).get(int(running_ms))
                if parallelism:
                    vertex |= {"parallelism": parallelism, "status": RUNNING}
            if not any("parallelism" in vertex for vertex in reported):
                return None
        elif np.isfinite(self._steps.stopped_ms[step]):
            times[state] = int(self._steps.stopped_ms[step])
        return {"jid": self._job.job_id, "name": self._name, "state": state, "timestamps": times, "vertices": reported}

    def _job_metrics(self, step: int) -> list[dict[str, str]]:
        reported = ((name, self._steps.values[name][step]) for name in JOB_METRICS if name in self._steps.values)
        return [{"id": name, "value": str(int(value))} for name, value in reported if np.isfinite(value)]

    def _checkpoints(self) -> Iterator[RawRecord]:
        """Tell each completed checkpoint once, as the latest at the first sample after it."""
        steps, last = self._steps, 0.0
        needed = ("lastCheckpointCompletedTimestamp", "lastCompletedCheckpointId", "lastCheckpointDuration")
        if any(name not in steps.values for name in needed):
            return
        size = steps.values.get("lastCheckpointFullSize")
        for step in np.flatnonzero(np.isfinite(steps.times_s)).tolist():
            done, number, took = (float(steps.values[name][step]) for name in needed)
            if not (done > last and number > 0 and took >= 0):
                continue
            last = done
            latest: dict[str, Any] = {
                "id": int(number),
                "status": CHECKPOINT_COMPLETED,
                "trigger_timestamp": int(done - took),
                "latest_ack_timestamp": int(done),
                "end_to_end_duration": int(took),
            }
            if size is not None and size[step] >= 0:
                latest["state_size"] = int(size[step])
            at_ms = round(1000 * steps.times_s[step])
            yield self._record(at_ms, Endpoint.CHECKPOINTS, "jobmanager_job", {"latest": {"completed": latest}})

    def _vertex_lines(self, vertex: str, steps: VertexSteps) -> Iterator[RawRecord]:
        reported = [
            (name, np.asarray(np.isfinite(values).all(axis=1)).tolist(), values.tolist())
            for name, values in steps.values.items()
        ]
        for place, at_ms in enumerate(steps.at_ms.tolist()):
            body = [
                {"id": name, **dict(zip(AGGREGATES, rows[place], strict=True))}
                for name, is_whole, rows in reported
                if is_whole[place]
            ]
            if body:
                yield self._record(at_ms, Endpoint.VERTEX_METRICS, "taskmanager_job_task", body, vertex)

    def _record(self, at_ms: int, kind: Endpoint, scope: str, body: Any, vertex: str | None = None) -> RawRecord:
        return self._writer.record(at_ms, kind, scope, body, job_id=self._job.job_id, vertex_id=vertex)
