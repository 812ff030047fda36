"""Keys that settings once had: what was moved, and what became a constant and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from include.settings.refusals import MOVED, Fault, model_in, show_value, write_path

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """A key that has one value.

    Attributes:
        path: its sections, and itself; ``<name>`` stands for a name of the user's own.
        value: that it has.
        because: why nobody needs another one.
    """

    path: Path
    value: object
    because: str

    def refuse(self, path: Path, given: object) -> Fault:
        """Return the fault of settings that set it."""
        reason = f"is a constant now: {write_constant(self.value)}, because {self.because}"
        return Fault(write_path(path), f"{reason}; remove it (tidewise settings --migrate does)", show_value(given))


def write_constant(value: object) -> str:
    """Return the value of a constant as a person writes it."""
    return f"{value:g}" if isinstance(value, float) else show_value(value)


def list_constants(model: type[BaseModel], within: Path = (), because: str | None = None) -> Iterator[Constant]:
    """Yield what became a constant; that a whole section did is the reason of each of its keys."""
    for name, field in model.model_fields.items():
        inside, why = model_in(field.annotation), field.description if field.frozen else because
        path = (*within, name) if inside is None or field.annotation is inside else (*within, name, "<name>")
        if inside is not None:
            yield from list_constants(inside, path, why)
        elif why:
            yield Constant(path, field.get_default(call_default_factory=True), why)


def find_constants(values: Mapping[str, Any], model: type[BaseModel]) -> Iterator[tuple[Path, Fault, bool]]:
    """Yield path and fault of each key of nested values that became a constant, and whether it says another value."""
    for one in list_constants(model):
        for path, given in _matches(values, one.path):
            yield path, one.refuse(path, given), given != one.value


def find_moved(values: Mapping[str, Any], within: Path = ()) -> Iterator[tuple[Path, Path]]:
    """Yield path and present path of each key of nested values that is written otherwise now."""
    for key, value in values.items():
        path = (*within, key)
        if isinstance(value, Mapping):
            yield from find_moved(value, path)
        elif (place := MOVED.get(write_path(path))) is not None:
            yield path, tuple(place.split("."))
        elif key in MOVED:
            yield path, (*within, *MOVED[key].split("."))


def _matches(values: Any, pattern: Path) -> Iterator[tuple[Path, object]]:
    if not pattern:
        yield (), values
    elif isinstance(values, Mapping):
        first, *rest = pattern
        for name in values if first == "<name>" else {first} & values.keys():
            yield from (((name, *path), given) for path, given in _matches(values[name], tuple(rest)))
