"""What the last polls show of one job besides its windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from include.domain.graph import JobGraph
from include.domain.operator_matching import PlacedOperator
from include.flink.job_states import RESTARTING_STATES, RUNNING
from models.observing.stops import Stop
from models.polling.job_layout import JobLayout
from models.polling.job_replies import JobReply, Node
from models.polling.run_log import RunLog


@dataclass(frozen=True, slots=True)
class PolledJob:
    """A job as it was last seen.

    Attributes:
        state: Flink's, by the last reply.
        polled_at_ms: epoch milliseconds of the last reply.
        running: operator -> parallelism by the last reply in state RUNNING, else by the last one: while a job waits for
            slots, Flink shows a parallelism that is not real.
        restarting: it ran and is being brought back.
        vertex_ids: operator -> vertex id, in the order of the graph, and then those that the graph leaves out.
        finished: operators that have come to their end while the job runs on; no part of the graph.
        idle: operators that are fed by none but finished ones -> parallelism; no part of the graph.
        graph: None while it is not known.
        placed: all operators with their places; empty while the graph is not known.
        job_type: STREAMING or BATCH; empty where Flink does not tell.
        stops: in order of time, as far back as is kept.
        metrics: the job's own metrics.
    """

    cluster: str
    job: str
    job_id: str
    state: str
    polled_at_ms: int
    running: dict[str, int]
    restarting: bool
    vertex_ids: dict[str, str]
    finished: frozenset[str]
    graph: JobGraph | None
    stops: tuple[Stop, ...]
    metrics: Mapping[str, float]
    idle: Mapping[str, int] = field(default_factory=dict)
    placed: tuple[PlacedOperator, ...] = ()
    job_type: str = ""

    @property
    def is_up(self) -> bool:
        """Whether it processes."""
        return self.state == RUNNING


@dataclass(slots=True)
class JobRecord:
    """What is kept of a job besides the arrays.

    Attributes:
        reply: the last one.
        polled_ms: when that was, epoch milliseconds.
        rows: vertex id -> row of :class:`models.polling.vertex_arrays.VertexArrays`.
        parallelism: vertex id -> as last seen RUNNING.
        nodes: of the last plan.
    """

    reply: JobReply
    polled_ms: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    parallelism: dict[str, int] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()
    layout: JobLayout = field(default_factory=JobLayout)
    log: RunLog = field(default_factory=RunLog)
    metrics: dict[str, float] = field(default_factory=dict)

    def list_rows(self) -> list[int]:
        """Return the rows of its operators, in the order of the layout."""
        return [self.rows[vertex_id] for vertex_id in self.layout.vertex_ids]

    def drop_lost_rows(self) -> bool:
        """Drop the rows of vertices that it had, and has no more; returns whether there are any."""
        lost = self.rows.keys() - self.parallelism.keys() - {vertex.vertex_id for vertex in self.reply.vertices}
        for vertex_id in lost:
            del self.rows[vertex_id]
        return bool(lost)

    def describe(self, cluster: str, job_id: str) -> PolledJob:
        """Return what is seen of it."""
        has_run = self.log.ran_ms is not None
        reported = {vertex.vertex_id: vertex.parallelism for vertex in self.reply.vertices}
        shown = self.parallelism if has_run else reported
        names = dict(zip(self.layout.vertex_ids, self.layout.operators, strict=True))
        return PolledJob(
            cluster=cluster,
            job=self.reply.name,
            job_id=job_id,
            state=self.reply.state,
            polled_at_ms=self.polled_ms,
            running={name: shown[vertex_id] for vertex_id, name in names.items() if shown.get(vertex_id)},
            restarting=has_run and self.reply.state in RESTARTING_STATES,
            vertex_ids={name: vertex_id for vertex_id, name in names.items()}
            | {**self.layout.idle, **self.layout.finished},
            finished=frozenset(self.layout.finished),
            graph=self.layout.graph,
            stops=tuple(self.log.stops()) if self.log.has_stops else (),
            metrics=self.metrics,
            idle={name: shown[vertex_id] for name, vertex_id in self.layout.idle.items() if shown.get(vertex_id)},
            placed=self.layout.placed,
            job_type=self.reply.job_type,
        )
