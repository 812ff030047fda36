"""The operators of a job in the order of its graph, by the names that every table uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from include.domain.finished_operators import FINISHED, drop_finished
from include.domain.graph import GraphError, JobGraph, Operator
from include.domain.operator_matching import CHAINED, PlacedOperator
from include.domain.slots import DEFAULT_GROUP
from models.polling.job_replies import Node, Vertex

_SOURCE_PREFIX = "Source: "  # how Flink names sources


@dataclass(frozen=True, slots=True)
class JobLayout:
    """The operators of a job.

    Attributes:
        vertex_ids: in the order of the graph; of the reply while no graph is known. Of operators that have finished, or
            are fed by none but such, there are none here.
        operators: their names, same order.
        is_source: whether nothing feeds them, same order; by name while no graph is known.
        graph: None while no plan was seen, or when what was seen is no graph.
        problem: why there is no graph; None when there is one or no plan was seen.
        finished: names of the operators that have come to their end -> vertex id.
        idle: the same of those that are fed by none but finished ones.
        placed: all operators with their places, in topological order; empty while no graph is known.
    """

    vertex_ids: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    is_source: tuple[bool, ...] = ()
    graph: JobGraph | None = None
    problem: str | None = None
    finished: Mapping[str, str] = field(default_factory=dict)
    idle: Mapping[str, str] = field(default_factory=dict)
    placed: tuple[PlacedOperator, ...] = ()

    @property
    def is_chained(self) -> tuple[bool, ...]:
        """Whether several operators are chained in a vertex, in the order of the operators."""
        return tuple(CHAINED in name for name in self.operators)


def name_operators(vertices: Sequence[Vertex]) -> dict[str, str]:
    """Return vertex id -> operator: its name, with a piece of the id where several have the same, or it has none.

    The whole id stands there where even that is not unique: no two operators have one name.
    """
    whole = {vertex.vertex_id: f"{vertex.name} ({vertex.vertex_id})".lstrip(" ") for vertex in vertices}
    named = {vertex.vertex_id: vertex.name for vertex in vertices}
    short = {vertex.vertex_id: f"{vertex.name} ({vertex.vertex_id[:8]})".lstrip(" ") for vertex in vertices}
    for longer in (short, whole):
        alike = Counter(named.values())
        named = {key: text if text and alike[text] == 1 else longer[key] for key, text in named.items()}
    return named if len(set(named.values())) == len(named) else whole


def lay_out(vertices: Sequence[Vertex], nodes: Sequence[Node]) -> JobLayout:
    """Return a job's operators, by the vertices of a ``job`` reply and the nodes of its plan, none while unseen."""
    named = name_operators(vertices)
    upstream = dict(nodes)
    if nodes and set(upstream) != set(named):
        return _without_graph(vertices, named, "the plan names other vertices than the job")
    if not nodes:
        return _without_graph(vertices, named, None)
    depth = _depths(upstream)
    has_ended = [vertex.vertex_id for vertex in vertices if vertex.state == FINISHED]
    at_work = drop_finished(upstream, has_ended)
    if not at_work:
        return _without_graph(vertices, named, None)
    reported = {vertex.vertex_id: vertex for vertex in vertices}
    in_order = sorted(upstream, key=lambda vertex_id: (depth[vertex_id], vertex_id))
    try:
        placed = tuple(
            PlacedOperator(named[vertex], vertex, at, tuple(named[feeder] for feeder in upstream[vertex]))
            for at, vertex in enumerate(in_order)
        )
        graph = JobGraph.from_operators(
            [
                Operator(
                    named[vertex],
                    tuple(named[feeder] for feeder in at_work[vertex]),
                    reported[vertex].max_parallelism,
                    slot_sharing_group=reported[vertex].slot_sharing_group or DEFAULT_GROUP,
                )
                for vertex in in_order
                if vertex in at_work
            ]
        )
    except (GraphError, KeyError) as error:
        return _without_graph(vertices, named, str(error))
    by_name = {name: vertex_id for vertex_id, name in named.items()}
    return JobLayout(
        tuple(by_name[name] for name in graph.names),
        graph.names,
        tuple(operator.is_source for operator in graph.operators),
        graph,
        finished={named[vertex]: vertex for vertex in has_ended},
        idle={named[vertex]: vertex for vertex in upstream if vertex not in at_work and vertex not in has_ended},
        placed=placed,
    )


def _without_graph(vertices: Sequence[Vertex], named: dict[str, str], problem: str | None) -> JobLayout:
    ids = tuple(vertex.vertex_id for vertex in vertices)
    names = tuple(named[vertex_id] for vertex_id in ids)
    is_source = tuple(name.startswith(_SOURCE_PREFIX) for name in names)
    finished = {named[vertex.vertex_id]: vertex.vertex_id for vertex in vertices if vertex.state == FINISHED}
    return JobLayout(ids, names, is_source, None, problem, finished)


def _depths(upstream: dict[str, tuple[str, ...]]) -> dict[str, int]:
    """Return how many operators stand before each on its longest way; in a cycle it stops at their number."""
    depth = dict.fromkeys(upstream, 0)
    for _ in upstream:
        deeper = {
            vertex: max((min(depth.get(feeder, -1) + 1, len(upstream)) for feeder in feeding), default=0)
            for vertex, feeding in upstream.items()
        }
        if deeper == depth:
            break
        depth = deeper
    return depth
