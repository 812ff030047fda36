"""Raw lines of a simulated cluster: what a poller would have written, job by job within an hour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from include.flink.endpoints import job_metrics_path, job_path, vertex_metrics_path
from include.flink.raw_format import Endpoint
from lab.simulation.fleet import Fleet
from lab.simulation.rest.cadence import EVERY_SAMPLE, PollSelection
from lab.simulation.rest.events import build_exceptions_reply, build_overview_reply
from lab.simulation.rest.job_reply import build_hollow_details, build_job_reply, build_plan_reply, list_hole_values
from lab.simulation.rest.job_timeline import JobTimeline, TimeOrigin
from lab.simulation.rest.metrics import (
    BUSY,
    aggregate_metrics,
    build_metrics_template,
    list_columns,
    list_metric_ids,
)
from lab.simulation.rest.template import HOLE, Ids, build_template, dumps
from lab.simulation.samples import SampledMetrics
from lab.simulation.state import Restart

NAN_AFTER_START_S = 20.0
SLOTS_PER_TASKMANAGER = 4


@dataclass(frozen=True, slots=True)
class _Templates:
    """Raw lines of one job with holes for numbers; see :meth:`LineWriter._templates`."""

    job: str
    measured: tuple[str, ...]
    unmeasured: tuple[str, ...]
    nothing: tuple[str, ...]
    metrics: tuple[list[int], ...]


class LineWriter:
    """Makes the raw lines of some jobs.

    Args:
        fleet: the jobs of ``samples``.
        samples: polls of these jobs.
        restarts: of these jobs, job indices as in ``fleet``, of the whole run up to the last poll.
        origin: calendar and cluster.
        cadence: which of the samples are polled.
    """

    def __init__(
        self,
        fleet: Fleet,
        samples: SampledMetrics,
        restarts: Sequence[Restart],
        origin: TimeOrigin,
        cadence: PollSelection = EVERY_SAMPLE,
    ) -> None:
        self._fleet, self._samples, self._origin, self._cadence = fleet, samples, origin, cadence
        self._recovering = cadence.find_recovering(fleet, samples)
        self._ids = [Ids.of(origin.cluster, spec) for spec in fleet.specs]
        self._jobs = [JobTimeline(fleet, samples, restarts, origin, job) for job in range(len(fleet.specs))]
        self._values = aggregate_metrics(fleet, samples)

    def hour(self, samples: range, *, cluster_wide: bool) -> Iterator[str]:
        """Yield the lines of one hour, of these samples: the cluster's (if wanted), then job by job.

        Checkpoints are polled every quarter of an hour (the reply lists the last ten).  What changes slowly (plan, job
        metrics, exceptions, overview) is polled once, at the hour's first regular poll, and exceptions also when there
        is a new one.
        """
        regular = self._cadence.list_regular(samples)
        if cluster_wide:
            yield self._overview(regular[0])
        for job in range(len(self._fleet.specs)):
            templates = self._templates(job)
            polls = [poll for poll in samples if poll in regular or self._recovering[poll, job]]
            for before, poll in zip([samples[0] - 1, *polls], polls, strict=False):
                quarter = (samples[-1] - poll) % max(1, len(samples) // 4) == 0
                yield from self._job_lines(job, (before, poll), templates, first=poll == regular[0], quarter=quarter)
            for vertex in range(len(templates.metrics)):  # lines that look alike stand together: they compress better
                for poll in polls:
                    yield from self._vertex_line(job, poll, vertex, templates)

    def _at_ms(self, job: int, poll: int) -> int:
        """Return when the replies about a job arrive: one job is asked after the other."""
        return self._origin.ms(float(self._samples.at_s[poll])) + 37 * job % 4000

    def _line(
        self, at_ms: int | str, kind: Endpoint, endpoint: str, job: int | None, body: str, *, vertex: int = -1
    ) -> str:
        """Write one raw line; ``body`` is text or a template, then ``at_ms`` is a hole."""
        ids = None if job is None else self._ids[job]
        record = {
            "observed_at_ms": at_ms,
            "cluster": self._origin.cluster,
            "kind": str(kind),
            "endpoint": endpoint,
            "job_id": None if ids is None else ids.job,
            "vertex_id": None if ids is None or vertex < 0 else ids.vertices[vertex],
            "status": 200,
        }
        written = build_template(record) if at_ms == HOLE else dumps(record)
        return f'{written[:-1]},"body":{dumps(body)}}}'

    def _overview(self, poll: int) -> str:
        slots = int(self._samples.parallelism[poll].max(axis=1).sum())
        managers = int(np.ceil(slots * 1.25 / SLOTS_PER_TASKMANAGER))
        total, running = managers * SLOTS_PER_TASKMANAGER, int((~self._samples.down[poll]).sum())
        at_ms = self._origin.ms(float(self._samples.at_s[poll]))
        return self._line(
            at_ms,
            Endpoint.OVERVIEW,
            "/overview",
            None,
            dumps(build_overview_reply(managers, total, total - slots, running)),
        )

    def _job_lines(
        self, job: int, polls: tuple[int, int], templates: _Templates, *, first: bool, quarter: bool
    ) -> Iterator[str]:
        """Yield the lines about a job but its vertices' metrics; ``polls``: the one before, and the one to write."""
        before, poll = polls
        spec, ids, timeline = self._fleet.specs[job], self._ids[job], self._jobs[job]
        at_ms = self._at_ms(job, poll)
        details = timeline.details(poll, at_ms)
        if details.state == "RUNNING":
            yield templates.job % (at_ms, *list_hole_values(details))
        else:
            yield self._line(at_ms, Endpoint.JOB, job_path(ids.job), job, dumps(build_job_reply(spec, ids, details)))
        if quarter:
            checkpoints = dumps(timeline.checkpoints(poll, ids.job))
            yield self._line(at_ms + 2, Endpoint.CHECKPOINTS, job_path(ids.job, "checkpoints"), job, checkpoints)
        if first and details.state == "RUNNING":
            plan = dumps(build_plan_reply(spec, ids, details.parallelism))
            yield self._line(at_ms + 3, Endpoint.PLAN, job_path(ids.job, "plan"), job, plan)
        if first:
            metrics = dumps(timeline.job_metrics(poll, at_ms))
            yield self._line(at_ms + 4, Endpoint.JOB_METRICS, job_metrics_path(ids.job), job, metrics)
        if first or timeline.failed_between(before, poll):
            exceptions = dumps(build_exceptions_reply(timeline.failures(poll)))
            yield self._line(at_ms + 5, Endpoint.EXCEPTIONS, job_path(ids.job, "exceptions"), job, exceptions)

    def _templates(self, job: int) -> _Templates:
        """Write the lines that repeat: the job's, and each vertex's with, without and lacking a measured busy time."""
        spec, ids = self._fleet.specs[job], self._ids[job]
        hollow = build_job_reply(spec, ids, build_hollow_details(spec, self._origin.submitted_ms[job]))
        names = [list_metric_ids(operator) for operator in spec.operators]

        def lines(bodies: Sequence[str]) -> tuple[str, ...]:
            return tuple(
                self._line(
                    HOLE, Endpoint.VERTEX_METRICS, vertex_metrics_path(ids.job, vertex, own), job, body, vertex=index
                )
                for index, (vertex, own, body) in enumerate(zip(ids.vertices, names, bodies, strict=True))
            )

        return _Templates(
            job=self._line(HOLE, Endpoint.JOB, job_path(ids.job), job, build_template(hollow)),
            measured=lines([build_metrics_template(own, True) for own in names]),
            unmeasured=lines([build_metrics_template(own, False) for own in names]),
            nothing=lines(["[]"] * len(names)),
            metrics=tuple(list_columns(operator) for operator in spec.operators),
        )

    def _vertex_line(self, job: int, poll: int, vertex: int, templates: _Templates) -> Iterator[str]:
        """Yield a vertex's metrics: nothing while tasks are cancelled, an empty list while they are created."""
        state, at_ms = self._jobs[job].state(poll), self._at_ms(job, poll) + 10 + vertex
        if state == "RESTARTING":
            return
        if state == "CREATED":
            yield templates.nothing[vertex] % at_ms
            return
        numbers = self._values[poll, job, vertex, templates.metrics[vertex]]
        if self._jobs[job].running_for_s(poll) < NAN_AFTER_START_S:
            yield templates.unmeasured[vertex] % (at_ms, *np.delete(numbers, BUSY, axis=0).ravel().tolist())
        else:
            yield templates.measured[vertex] % (at_ms, *numbers.ravel().tolist())
