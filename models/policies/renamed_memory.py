"""A policy's memory of a job whose operators have other names since it was deployed again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

T = TypeVar("T")


def find_operators(memory: object, known: Collection[str]) -> set[str]:
    """Return the names that a memory holds values of, among all that operators of the job have ever had."""
    if isinstance(memory, Mapping):
        inside = set[str]().union(*(find_operators(value, known) for value in memory.values()))
        return inside | {name for name in memory if name in known}
    return set[str]().union(*(find_operators(part, known) for part in _parts(memory)))


def rename_operators(memory: T, names: Mapping[str, str], known: Collection[str]) -> T:
    """Return a memory under other names of operators; what it holds of operators that have gone is left out.

    ``names`` are before -> after, of the operators that are still there, ``known`` all names before.
    """
    renamed: Any = memory
    if isinstance(memory, Mapping):
        renamed = {
            names.get(name, name): rename_operators(value, names, known)
            for name, value in memory.items()
            if name in names or name not in known
        }
    elif isinstance(memory, tuple):
        parts = [rename_operators(part, names, known) for part in memory]
        renamed = type(memory)(*parts) if hasattr(memory, "_fields") else tuple(parts)
    elif is_dataclass(memory) and not isinstance(memory, type):
        given = {one.name: getattr(memory, one.name) for one in fields(memory) if one.init}
        changed = {name: rename_operators(value, names, known) for name, value in given.items()}
        renamed = replace(memory, **changed)
    result: T = renamed
    return result


def _parts(memory: object) -> list[object]:
    if isinstance(memory, tuple):
        return list(memory)
    if is_dataclass(memory) and not isinstance(memory, type):
        return [getattr(memory, one.name) for one in fields(memory)]
    return []
