"""The last polls of all jobs of all clusters: replies go in, windows and states of all jobs come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from include.domain.finished_operators import FINISHED
from include.domain.quarantine_rules import Rule
from include.domain.reply_limits import HTTP_OK, is_hex_id
from include.flink.job_states import RUNNING
from include.flink.raw_format import Endpoint, RawRecord
from models.observing.ages import JobRows
from models.observing.outstanding import OutstandingRecords
from models.observing.samples import Samples, Vertices
from models.polling import job_replies
from models.polling.faults import ReplyError, ReplyFault, shorten
from models.polling.job_layout import lay_out
from models.polling.job_replies import JobReply, Node, TaskSlots
from models.polling.job_windows import JobWindows, OperatorRows, by_job
from models.polling.metric_values import MetricReply, read_replies, select_metrics
from models.polling.seen_job import JobRecord, PolledJob
from models.polling.vertex_arrays import VertexArrays
from models.polling.windows import count_polls, row_windows

_KINDS = frozenset(Endpoint)
_FIRST_KINDS = frozenset({Endpoint.JOB, Endpoint.PLAN})  # they name the vertices that the others are about
_OF_INGESTION = frozenset({Endpoint.KAFKA_OFFSETS, Endpoint.RESCALE})  # read by ingestion alone
JobKey = tuple[str, str]
"""Cluster and Flink's job id."""
_Measured = tuple[int, RawRecord, MetricReply]  # row, reply and its metrics


class PollHistory:
    """Takes in replies, poll by poll, and gives windows and states of all jobs.

    Args:
        window_s: cluster -> length of its windows, whole seconds.
        other_window_s: of a cluster that is not named.
        polls: how many polls of a vertex are kept.
        max_value: a metric above it cannot be.
        settle_s: how long after a start windows still count as disturbed.
        name_job: of a cluster and Flink's name, the name of the job.

    Attributes:
        slots: cluster -> its task slots by the last ``overview`` reply.
    """

    def __init__(
        self,
        window_s: Mapping[str, int],
        *,
        other_window_s: int = 300,
        polls: int = 15,
        max_value: float = 1e15,
        settle_s: int = 30,
        name_job: Callable[[str, str], str] = lambda _, name: name,
    ) -> None:
        self._window_s, self._other_window_s = dict(window_s), other_window_s
        self._max_value, self._settle_s = max_value, settle_s
        self._name_job = name_job
        self._arrays = VertexArrays(polls)
        self._jobs: dict[JobKey, JobRecord] = {}
        self._polled: tuple[Samples, OutstandingRecords] | None = None  # None after news
        self._rows: OperatorRows | None = None  # None after a change of any job's operators
        self.slots: dict[str, TaskSlots] = {}

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays, bytes."""
        return self._arrays.nbytes

    def add(self, records: Iterable[RawRecord]) -> list[ReplyFault]:
        """Take in replies of one or more polls, in any order; returns what cannot be used, which harms nothing else."""
        faults: list[ReplyFault] = []
        measured: list[_Measured] = []
        self._polled = None
        reported = (record for record in records if record.kind not in _OF_INGESTION)
        for record in sorted(reported, key=lambda one: (one.kind not in _FIRST_KINDS, one.observed_at_ms)):
            try:
                self._add_record(record, measured, faults)
            except ReplyError as error:
                faults.append(self._fault(record, error.rule, error.detail))
        if measured:
            self._add_measured(measured, faults)
        return faults

    def jobs(self) -> list[PolledJob]:
        """Return what is seen of each job, in the order of :meth:`windows`."""
        return [job.describe(*key) for key, job in self._jobs.items()]

    def windows(self, now_s: float, most_s: Mapping[str, int] | None = None) -> JobWindows:
        """Return the windows of all jobs that ended by ``now_s`` (epoch seconds), in the order of :meth:`jobs`.

        ``most_s`` is how long those of a cluster are at most, whole seconds; None for their own length.
        """
        rows, arrays = self._known_rows(), self._arrays
        if most_s is not None:
            rows = rows.shorten([most_s.get(cluster, self._other_window_s) for cluster, _ in self._jobs])
        if self._polled is None:
            graphs = ((job.layout.graph, job) for job in self._jobs.values())
            known = [
                JobRows(job.list_rows(), graph.list_feeders(), job.log.list_checkpoints())
                for graph, job in graphs
                if graph is not None
            ]
            self._polled = count_polls(arrays.samples, self._known_rows().vertices, known)
        result = row_windows(arrays.samples, arrays.parallelism, rows.vertices, self._polled, now_s)
        stops = [
            (number, stop)
            for number, job in enumerate(self._jobs.values())
            if job.log.has_disturbances
            for stop in job.log.disturbances()
        ]
        return by_job(result, rows, stops, self._settle_s, now_s)

    def forget(self, before_ms: int, after_ms: float = math.inf) -> list[JobKey]:
        """Forget, and return, the jobs whose last reply is older, or later (epoch ms), and vertices that jobs lost.

        After the clock was set back, later replies would keep the present ones out as not newer.  An application that
        is deployed anew has the same id, and may have other vertices.
        """
        gone = [key for key, job in self._jobs.items() if not before_ms <= job.polled_ms <= after_ms]
        for key in gone:
            del self._jobs[key]
        lost = [job.drop_lost_rows() for job in self._jobs.values()]
        if not gone and not any(lost):
            return []
        self._polled = None
        retained = [row for job in self._jobs.values() for row in job.rows.values()]
        self._arrays.keep_rows(np.array(retained, np.int64))
        numbers = {row: number for number, row in enumerate(retained)}
        for job in self._jobs.values():
            job.rows = {vertex_id: numbers[row] for vertex_id, row in job.rows.items()}
        self._rows = None
        return gone

    def _add_record(self, record: RawRecord, measured: list[_Measured], faults: list[ReplyFault]) -> None:
        if record.status != HTTP_OK:
            raise ReplyError(Rule.HTTP_ERROR, f"{record.status}: {shorten(record.body)}")
        if record.kind not in _KINDS:
            raise ReplyError(Rule.UNKNOWN_KIND, shorten(record.kind))
        if record.kind == Endpoint.OVERVIEW:
            self.slots[record.cluster] = job_replies.read_overview(job_replies.decode(record.body))
            return
        key = (record.cluster, _hex_id(record.job_id, "job_id"))
        result = job_replies.decode(record.body)
        if record.kind == Endpoint.JOB:
            reply = job_replies.read_job(result)
            self._add_job(key, record, replace(reply, name=self._name_job(record.cluster, reply.name)), faults)
            if isinstance(result.get("plan"), dict):
                self._add_plan(self._jobs[key], job_replies.read_plan(result))
            return
        job = self._jobs.get(key)
        if job is None:
            raise ReplyError(Rule.UNKNOWN_VERTEX, "of a job that no reply named")
        match record.kind:
            case Endpoint.PLAN:
                self._add_plan(job, job_replies.read_plan(result))
            case Endpoint.CHECKPOINTS:
                job.log.add_checkpoints(job_replies.read_checkpoints(result))
            case Endpoint.EXCEPTIONS:
                job.log.add_failures(job_replies.read_failures(result))
            case Endpoint.JOB_METRICS:
                job.metrics = job_replies.read_job_metrics(result)
            case _:
                self._add_metrics(record, job, result, measured)

    def _add_job(self, key: JobKey, record: RawRecord, reply: JobReply, faults: list[ReplyFault]) -> None:
        job = self._jobs.setdefault(key, JobRecord(reply))
        if record.observed_at_ms <= job.polled_ms:
            raise ReplyError(Rule.NOT_NEWER, f"observed at {record.observed_at_ms}, the one before at {job.polled_ms}")
        is_changed = not job.polled_ms or _list_vertices(reply) != _list_vertices(job.reply)
        job.reply, job.polled_ms = reply, record.observed_at_ms
        job.log.add_reply(record.observed_at_ms, reply)
        if is_changed:
            new = [vertex.vertex_id for vertex in reply.vertices if vertex.vertex_id not in job.rows]
            job.rows.update(zip(new, self._arrays.add_rows(len(new)), strict=True))
        for vertex in reply.vertices:
            if not vertex.name:
                faults.append(self._fault(record, Rule.MISSING_FIELD, f"name of vertex {shorten(vertex.vertex_id)}"))
        if reply.state == RUNNING:
            self._note_parallelism(job)
        if is_changed:
            self._lay_out(job)

    def _note_parallelism(self, job: JobRecord) -> None:
        now = {vertex.vertex_id: vertex.parallelism for vertex in job.reply.vertices}
        if now == job.parallelism:
            return
        before, job.parallelism = job.parallelism, now
        changed = [vertex for vertex in {**before, **now} if now.get(vertex, 0) != before.get(vertex, 0)]
        rows = [job.rows[vertex] for vertex in changed]
        self._arrays.push_parallelism(rows, job.polled_ms, [now.get(vertex, 0) for vertex in changed])

    def _add_plan(self, job: JobRecord, nodes: tuple[Node, ...]) -> None:
        if nodes and nodes != job.nodes:
            job.nodes = nodes
            self._lay_out(job)

    def _lay_out(self, job: JobRecord) -> None:
        """Put the operators in order again.

        Raises:
            ReplyError: what was seen is no graph; the job is kept without one.
        """
        self._rows = None
        job.layout = lay_out(job.reply.vertices, job.nodes)
        if job.layout.problem is not None:
            raise ReplyError(Rule.BAD_GRAPH, shorten(job.layout.problem))

    def _add_metrics(self, record: RawRecord, job: JobRecord, result: object, measured: list[_Measured]) -> None:
        vertex_id = _hex_id(record.vertex_id, "vertex_id")
        row = job.rows.get(vertex_id)
        if row is None:
            raise ReplyError(Rule.UNKNOWN_VERTEX, f"vertex {record.vertex_id}")
        metrics = select_metrics(result)
        if metrics is not None:  # else a vertex that is being deployed: no measurement
            measured.append((row, record, metrics))

    def _add_measured(self, measured: Sequence[_Measured], faults: list[ReplyFault]) -> None:
        records = [record for _, record, _ in measured]
        columns, unusable = read_replies([metrics for _, _, metrics in measured], self._max_value)
        for number, one in unusable:
            faults.append(self._vertex_fault(records[number], one.rule, one.detail))
        rows = np.array([row for row, _, _ in measured])
        times_ms = np.array([record.observed_at_ms for record in records])
        is_partial = columns.subtasks < self._arrays.find_parallelism(rows, times_ms)
        for number in np.flatnonzero(is_partial).tolist():
            detail = f"aggregates over {columns.subtasks[number]:.0f} subtasks alone"
            faults.append(self._vertex_fault(records[number], Rule.MISSING_SUBTASKS, detail))
        whole = np.flatnonzero(~is_partial)
        late = self._arrays.push_metrics(rows[whole], times_ms[whole], columns.values.T[whole])
        for number in whole[late].tolist():
            detail = f"observed at {records[number].observed_at_ms}"
            faults.append(self._vertex_fault(records[number], Rule.NOT_NEWER, detail))

    def _known_rows(self) -> OperatorRows:
        if self._rows is None:
            self._rows = self._number_rows()
        return self._rows

    def _number_rows(self) -> OperatorRows:
        count = self._arrays.samples.rows
        job_of, position = np.zeros(count, np.int64), np.full(count, -1)
        is_source, is_chained = np.zeros(count, bool), np.zeros(count, bool)
        for number, job in enumerate(self._jobs.values()):
            job_of[list(job.rows.values())] = number
            at = job.list_rows()
            position[at] = np.arange(len(at))
            is_source[at], is_chained[at] = job.layout.is_source, job.layout.is_chained
        lengths = np.array([self._window_s.get(cluster, self._other_window_s) for cluster, _ in self._jobs], np.int64)
        operators = [len(job.layout.operators) for job in self._jobs.values()]
        vertices = Vertices(lengths[job_of] if count else job_of, is_source, is_chained)
        return OperatorRows(job_of, position, vertices, lengths, np.array(operators, np.int64))

    def _vertex_fault(self, record: RawRecord, rule: Rule, detail: str) -> ReplyFault:
        return self._fault(record, rule, f"vertex {record.vertex_id}: {detail}")

    def _fault(self, record: RawRecord, rule: Rule, detail: str) -> ReplyFault:
        job = self._jobs.get((record.cluster, str(record.job_id)))
        name = job.reply.name if job is not None else shorten(record.job_id or "")
        return ReplyFault(record.cluster, name, rule, f"{record.kind}: {detail}")


def _hex_id(given: str | None, field: str) -> str:
    if not is_hex_id(given):
        raise ReplyError(Rule.BAD_ID, f"{field} {shorten(str(given))}")
    return given


def _list_vertices(reply: JobReply) -> list[tuple[str, str, int, bool]]:
    return [
        (vertex.vertex_id, vertex.name, vertex.max_parallelism, vertex.state == FINISHED) for vertex in reply.vertices
    ]
