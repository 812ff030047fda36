"""The job as the autoscaler sees it: vertices, what feeds them and over which exchange."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from include.domain.graph import GraphError, JobGraph, Operator

HASH = "HASH"


@dataclass(frozen=True, slots=True)
class TopologyVertex:
    """One vertex.

    Attributes:
        name: of the vertex.
        parallelism: running.
        max_parallelism: its number of key groups.
        inputs: upstream vertex -> ship strategy (``HASH``, ``REBALANCE``, ``FORWARD``, ...); empty for a source.
        source_partitions: of the topic that a source reads; 0 when not known.
        slot_sharing_group: its group.
    """

    name: str
    parallelism: int
    max_parallelism: int
    inputs: Mapping[str, str] = field(default_factory=dict)
    source_partitions: int = 0
    slot_sharing_group: str = "default"

    def __post_init__(self) -> None:
        if self.parallelism < 1 or self.max_parallelism < 1:
            raise GraphError(f"vertex {self.name!r} needs a parallelism and a maximum parallelism of at least 1")


@dataclass(frozen=True, slots=True)
class JobTopology:
    """Vertices in topological order; build with :meth:`of`."""

    vertices: tuple[TopologyVertex, ...]

    @classmethod
    def of(cls, vertices: Iterable[TopologyVertex]) -> JobTopology:
        """Sort vertices topologically.

        Raises:
            GraphError: unknown upstream, duplicate name or cycle.
        """
        given = list(vertices)
        graph = JobGraph.from_operators([Operator(one.name, tuple(one.inputs), one.max_parallelism) for one in given])
        return cls(tuple(sorted(given, key=lambda one: graph.position(one.name))))

    @property
    def names(self) -> tuple[str, ...]:
        """Names in topological order."""
        return tuple(one.name for one in self.vertices)

    def vertex(self, name: str) -> TopologyVertex:
        """Return a vertex.

        Raises:
            GraphError: none of that name.
        """
        for one in self.vertices:
            if one.name == name:
                return one
        raise GraphError(f"no vertex {name!r}; the job has {list(self.names)}")

    def outputs(self, name: str) -> tuple[str, ...]:
        """Return the names of the vertices that a vertex feeds."""
        return tuple(one.name for one in self.vertices if name in one.inputs)
