"""The operators of a Flink job and how records flow between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


class GraphError(ValueError):
    """A job graph that cannot be worked with: a cycle, an unknown upstream, a duplicate name."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One vertex of the job graph.

    Attributes:
        name: the operator's name, stable over restarts and resubmissions; the key in every table.
        upstream: names of the operators that feed it, empty for a source.
        max_parallelism: number of key groups, the hard upper bound of its parallelism.
    """

    name: str
    upstream: tuple[str, ...] = ()
    max_parallelism: int = 128

    @property
    def is_source(self) -> bool:
        """Whether nothing feeds the operator."""
        return not self.upstream


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
        return cls(tuple(placed[name] for name in placed))

    @property
    def names(self) -> tuple[str, ...]:
        """Operator names in topological order."""
        return tuple(operator.name for operator in self.operators)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources in topological order."""
        return tuple(operator.name for operator in self.operators if operator.is_source)

    def position(self, name: str) -> int:
        """Return the topological position of an operator.

        Raises:
            GraphError: no operator of that name.
        """
        try:
            return self._index[name]
        except KeyError:
            raise GraphError(f"no operator {name!r}; the job has {list(self.names)}") from None
