"""What other distributions add to Tidewise, found by the entry points that they declare: policies, stages, commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

LABORATORY = "tidewise-lab"
"""The distribution in ``lab/``, which `make setup` installs."""
EntryT = TypeVar("EntryT")


class EntryPointError(ValueError):
    """An entry point that cannot be used; the message names it and its distribution."""


def load_entries(group: str, kind: type[EntryT], taken: Iterable[str] = ()) -> Mapping[str, EntryT]:
    """Return what the entry points of a group name, by the names of the entry points.

    Args:
        group: such as ``tidewise.policies``.
        kind: class of what they have to name.
        taken: names that Tidewise itself has.

    Raises:
        EntryPointError: two have one name, a name is misspelt, or what it names is not of that class.
    """
    owners: dict[str, str] = dict.fromkeys(taken, "Tidewise")
    result: dict[str, EntryT] = {}
    for point in sorted(entry_points(group=group), key=lambda one: _owner(one) != LABORATORY):
        owner, what = _owner(point), f"{group}: {point.name!r}"
        if point.name in owners:
            raise EntryPointError(
                f"{what} is of {owners[point.name]} and of {owner}; rename the entry point of {owner}"
            )
        if not re.fullmatch(r"[a-z][a-z0-9_]*", point.name):
            raise EntryPointError(
                f"{what} of {owner}: a name has small letters, digits and underscores; rename the entry point"
            )
        owners[point.name], result[point.name] = owner, _load(point, kind, f"{what} of {owner}")
    return result


def find_command(name: str) -> Any:
    """Return ``main`` of a command of another distribution.

    Raises:
        EntryPointError: none is installed that has it.
    """
    for point in entry_points(group="tidewise.commands"):
        if point.name == name:
            return point.load()
    raise EntryPointError(f"the command {name!r} is not installed; run `make setup`, or install {LABORATORY} (lab/)")


def _load(point: EntryPoint, kind: type[EntryT], what: str) -> EntryT:
    try:
        entry = point.load()
    except Exception as error:
        raise EntryPointError(f"{what} cannot be loaded: {error!r}") from error
    if not isinstance(entry, kind):
        raise EntryPointError(f"{what}: {point.value} is not a {kind.__name__}")
    return entry


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.value
