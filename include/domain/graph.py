"""The operators of a Flink job and how records flow between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from include.domain.slots import DEFAULT_GROUP, count_slots

BY_KEY = "HASH"
"""How Flink names an edge whose records go by key."""
MAX_PARALLELISM = 128
"""Key groups of a vertex whose maximum nobody set, with up to 85 subtasks: Flink's default."""


class GraphError(ValueError):
    """A job graph that cannot be worked with: a cycle, an unknown upstream, a duplicate name."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One vertex of the job graph.

    Attributes:
        name: the operator's name, stable over restarts and resubmissions; the key in every table.
        upstream: names of the operators that feed it, empty for a source.
        max_parallelism: number of key groups, the hard upper bound of its parallelism.
        partitions: of a source that reads a partitioned topic: subtasks beyond them read nothing. None: not known.
        is_keyed: whether records come to it by key (HASH), so that its subtasks share its key groups.
        slot_sharing_group: operators of one group share slots; those of different groups do not.
    """

    name: str
    upstream: tuple[str, ...] = ()
    max_parallelism: int = MAX_PARALLELISM
    partitions: int | None = None
    is_keyed: bool = False
    slot_sharing_group: str = DEFAULT_GROUP

    @property
    def is_source(self) -> bool:
        """Whether nothing feeds the operator."""
        return not self.upstream

    @property
    def most_subtasks(self) -> int:
        """Highest parallelism at which every subtask has something to do: key groups, and partitions of a source."""
        return self.max_parallelism if self.partitions is None else min(self.max_parallelism, self.partitions)


@dataclass(frozen=True, slots=True)
class JobGraph:
    """Operators in topological order: every operator comes after those that feed it.

    Build with :meth:`from_operators`, which sorts and refuses cycles.
    """

    operators: tuple[Operator, ...]
    _index: dict[str, int] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        index = {operator.name: position for position, operator in enumerate(self.operators)}
        if len(index) != len(self.operators):
            raise GraphError("two operators have the same name")
        for position, operator in enumerate(self.operators):
            for upstream in operator.upstream:
                if index.get(upstream, len(index)) >= position:
                    raise GraphError(f"{operator.name!r} is fed by {upstream!r}, which does not come before it")
        object.__setattr__(self, "_index", index)

    @classmethod
    def from_operators(cls, operators: Sequence[Operator]) -> JobGraph:
        """Sort operators topologically (stable: ties keep their order).

        A slot-sharing group gets the name of its first operator, since Flink numbers groups anew at every submission;
        where there is one alone it is the default group.

        Raises:
            GraphError: unknown upstream, duplicate name or cycle.
        """
        known = {operator.name for operator in operators}
        for operator in operators:
            unknown = set(operator.upstream) - known
            if unknown:
                raise GraphError(f"{operator.name!r} is fed by unknown operators {sorted(unknown)}")
        placed: dict[str, Operator] = {}
        waiting = list(operators)
        while waiting:
            ready = [operator for operator in waiting if set(operator.upstream) <= placed.keys()]
            if not ready:
                raise GraphError(f"cycle among {sorted(operator.name for operator in waiting)}")
            placed.update((operator.name, operator) for operator in ready)
            waiting = [operator for operator in waiting if operator.name not in placed]
        return cls(_name_groups(tuple(placed.values())))

    @property
    def names(self) -> tuple[str, ...]:
        """Operator names in topological order."""
        return tuple(operator.name for operator in self.operators)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources in topological order."""
        return tuple(operator.name for operator in self.operators if operator.is_source)

    @property
    def slot_sharing_groups(self) -> tuple[str, ...]:
        """Slot-sharing group of each operator, in topological order."""
        return tuple(operator.slot_sharing_group for operator in self.operators)

    @property
    def group_of(self) -> dict[str, str]:
        """Operator -> its slot-sharing group."""
        return {one.name: one.slot_sharing_group for one in self.operators}

    def slots_of(self, parallelism: Mapping[str, int]) -> int:
        """Return the slots that a parallelism (operator -> subtasks) takes.

        >>> graph = JobGraph((Operator("source"), Operator("map", ("source",), slot_sharing_group="own")))
        >>> graph.slots_of({"source": 2, "map": 6})
        8
        """
        return count_slots(parallelism, self.group_of)

    def frees_nothing(self, running: Mapping[str, int], wanted: Mapping[str, int]) -> bool:
        """Whether a change gives no operator more and frees no slot, so that a stop for it buys nothing.

        >>> graph = JobGraph((Operator("source"), Operator("join", ("source",))))
        >>> graph.frees_nothing({"source": 8, "join": 8}, {"source": 1, "join": 8})
        True
        >>> graph.frees_nothing({"source": 8, "join": 8}, {"source": 1, "join": 7})
        False
        """
        grows = any(count > running.get(name, 0) for name, count in wanted.items())
        return not grows and self.slots_of({**running, **wanted}) >= self.slots_of(running)

    def with_partitions(self, partitions: Mapping[str, int]) -> JobGraph:
        """Return the graph with source -> number of partitions; what is no source of it is left out."""
        if not any(operator.is_source and operator.name in partitions for operator in self.operators):
            return self
        return JobGraph(
            tuple(
                replace(one, partitions=partitions.get(one.name, one.partitions)) if one.is_source else one
                for one in self.operators
            )
        )

    def list_feeders(self) -> list[list[int]]:
        """Return for each operator the positions of those that feed it, one for each exchange."""
        return [[self._index[name] for name in operator.upstream] for operator in self.operators]

    def position(self, name: str) -> int:
        """Return the topological position of an operator.

        Raises:
            GraphError: no operator of that name.
        """
        try:
            return self._index[name]
        except KeyError:
            raise GraphError(f"no operator {name!r}; the job has {list(self.names)}") from None


def _name_groups(operators: tuple[Operator, ...]) -> tuple[Operator, ...]:
    first: dict[str, str] = {}
    for operator in operators:
        first.setdefault(operator.slot_sharing_group, operator.name)
    if len(first) == 1:
        first = dict.fromkeys(first, DEFAULT_GROUP)
    return tuple(replace(one, slot_sharing_group=first[one.slot_sharing_group]) for one in operators)
