"""What other distributions add to Tidewise, found by the entry points that they declare: policies, stages, commands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

LABORATORY = "tidewise-lab"
"""The distribution in ``lab/``, which `make setup` installs."""
EntryT = TypeVar("EntryT")


class EntryPointError(ValueError):
    """An entry point that cannot be used; the message names it and its distribution."""


class EntryRegistry(Mapping[str, EntryT]):
    """What the product has of a kind and what the entry points of a group add, by name; these are loaded when read.

    ``kind`` is the class of what the entry points have to name.

    Raises:
        EntryPointError: two have one name, or a name is misspelt; when it is read, what it names is not of that class.
    """

    def __init__(self, group: str, kind: type[EntryT], built_in: Mapping[str, EntryT]) -> None:
        self._group, self._kind, self._built_in, self._loaded = group, kind, built_in, dict(built_in)
        self._points: dict[str, EntryPoint] = {}
        for point in sorted(entry_points(group=group), key=lambda each: _owner(each) != LABORATORY):
            self._add(point)

    def _add(self, point: EntryPoint) -> None:
        owner, what = _owner(point), f"{self._group}: {point.name!r}"
        if point.name in self._loaded or point.name in self._points:
            first = "Tidewise" if point.name in self._loaded else _owner(self._points[point.name])
            raise EntryPointError(f"{what} is of {first} and of {owner}; rename the entry point of {owner}")
        if not re.fullmatch(r"[a-z][a-z0-9_]*", point.name):
            raise EntryPointError(
                f"{what} of {owner}: a name has small letters, digits and underscores; rename the entry point"
            )
        self._points[point.name] = point

    def __getitem__(self, name: str) -> EntryT:
        if name not in self._loaded:
            point = self._points[name]
            self._loaded[name] = _load(point, self._kind, f"{self._group}: {name!r} of {_owner(point)}")
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._built_in, *self._points))

    def __len__(self) -> int:
        return len(set(self))


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
