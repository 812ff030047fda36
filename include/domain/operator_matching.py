"""Which operator of a redeployed job is which of the job before: names change with the chain that they stand for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass

CHAINED = " -> "  # how Flink joins the names of a chain
_NUMBER = re.compile(r"\[\d+\]")  # that the SQL planner gives an operator


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

    In this order: the same vertex id; the same name; the same head of the chain, where no other operator has it; the
    same position, where the graph has the same shape.  An id comes first, since a name may pass to another operator:
    the SQL planner numbers operators (``Calc[12]``) by a count that runs on from job to job of a session cluster.  So
    these numbers are no part of a name here.
    """
    result: dict[str, str] = {}
    keys: list[Callable[[PlacedOperator], Hashable]] = [
        lambda operator: operator.vertex_id,
        lambda operator: _without_numbers(operator.name),
        lambda operator: _without_numbers(operator.name.partition(CHAINED)[0]),
    ]
    if _shape(before) == _shape(after):
        keys.append(lambda operator: operator.position)
    for key in keys:
        taken = set(result.values())
        remaining_before = [operator for operator in before if operator.name not in result]
        remaining_after = [operator for operator in after if operator.name not in taken]
        known_before, known_after = (Counter(map(key, some)) for some in (remaining_before, remaining_after))
        names = {key(operator): operator.name for operator in remaining_after}
        for operator in remaining_before:
            value = key(operator)
            if value != "" and known_before[value] == 1 and known_after[value] == 1:
                result[operator.name] = names[value]
    return result


def follow_operators(versions: Sequence[Sequence[PlacedOperator]]) -> dict[tuple[str, str], str | None]:
    """Return name and vertex id of every operator that a job ever had -> its present name, None where it has gone.

    The present one of the job's graphs is the last.
    """
    if not versions:
        return {}
    current: dict[tuple[str, str], str | None] = {_key(operator): operator.name for operator in versions[-1]}
    for before, after in zip(versions[-2::-1], versions[:0:-1], strict=False):
        matched = match_operators(before, after)
        present = {operator.name: current[_key(operator)] for operator in after}
        for operator in before:
            if _key(operator) not in current:
                name = matched.get(operator.name)
                current[_key(operator)] = None if name is None else present[name]
    return current


def follow_names(names: Collection[str], versions: Sequence[Sequence[PlacedOperator]]) -> dict[str, str]:
    """Return present names of operators by the names that something was written under, those that have gone left out.

    It was written under the newest version that has all of the names; names that no version has stay as they are. The
    present one of the job's graphs is the last.
    """
    for version in reversed(versions):
        ids = {operator.name: operator.vertex_id for operator in version}
        if ids.keys() >= set(names):
            current = follow_operators(versions)
            result = {name: current[name, ids[name]] for name in names}
            return {name: now for name, now in result.items() if now is not None}
    return {name: name for name in names}


def _key(operator: PlacedOperator) -> tuple[str, str]:
    return operator.name, operator.vertex_id


def _without_numbers(name: str) -> str:
    return _NUMBER.sub("", name)


def _shape(operators: Sequence[PlacedOperator]) -> list[tuple[int, tuple[int, ...]]]:
    positions = {operator.name: operator.position for operator in operators}
    return sorted(
        (operator.position, tuple(sorted(positions.get(name, -1) for name in operator.upstream)))
        for operator in operators
    )
