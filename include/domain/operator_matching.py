"""Which operator of a redeployed job is which of the job before: names change with the chain that they stand for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

_CHAINED = " -> "  # how Flink joins the names of a chain


@dataclass(frozen=True, slots=True)
class PlacedOperator:
    """An operator and its place in the graph.

    Attributes:
        name: of the operator.
        vertex_id: Flink's hash, of the operator's uid or else of its place in the graph: it does not hold the name.
        position: in the order of the graph.
        upstream: names of the operators that feed it.
    """

    name: str
    vertex_id: str
    position: int
    upstream: tuple[str, ...] = ()


def match_operators(before: Sequence[PlacedOperator], after: Sequence[PlacedOperator]) -> dict[str, str]:
    """Return name before -> name after of the operators that are still there.

    In this order: the same name; the same vertex id; the same head of the chain, where no other operator has it; the
    same position, where the graph has the same shape.
    """
    found: dict[str, str] = {}
    keys: list[Callable[[PlacedOperator], Hashable]] = [
        lambda operator: operator.name,
        lambda operator: operator.vertex_id,
        lambda operator: operator.name.partition(_CHAINED)[0],
    ]
    if _shape(before) == _shape(after):
        keys.append(lambda operator: operator.position)
    for key in keys:
        left_before = [operator for operator in before if operator.name not in found]
        left_after = [operator for operator in after if operator.name not in found.values()]
        known_before, known_after = (Counter(map(key, some)) for some in (left_before, left_after))
        names = {key(operator): operator.name for operator in left_after}
        for operator in left_before:
            value = key(operator)
            if known_before[value] == 1 and known_after[value] == 1:
                found[operator.name] = names[value]
    return found


def follow_operators(versions: Sequence[Sequence[PlacedOperator]]) -> dict[str, str | None]:
    """Return every name that a job's operators ever had -> the present name, None of an operator that has gone.

    Args:
        versions: the job's graphs, the present one last.
    """
    current: dict[str, str | None] = {operator.name: operator.name for operator in versions[-1]} if versions else {}
    for before, after in zip(versions[-2::-1], versions[:0:-1], strict=False):
        matched = match_operators(before, after)
        for operator in before:
            if operator.name not in current:
                name = matched.get(operator.name)
                current[operator.name] = None if name is None else current[name]
    return current


def _shape(operators: Sequence[PlacedOperator]) -> list[tuple[int, tuple[int, ...]]]:
    positions = {operator.name: operator.position for operator in operators}
    return sorted(
        (operator.position, tuple(sorted(positions.get(name, -1) for name in operator.upstream)))
        for operator in operators
    )
