"""A settings file of an earlier release as one of today: every line that it can keep is kept, comments too."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from include.settings.refusals import write_path
from include.settings.retired import Path, find_constants, find_moved
from include.settings.tree import Settings


@dataclass(slots=True)
class Migration:
    """What became of a file.

    Attributes:
        lines: of the file as it is to be.
        notes: a line for each key that was dropped or moved, or that only a person can change.
    """

    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return the file."""
        return "\n".join(self.lines) + "\n"


def migrate(text: str) -> Migration:
    """Return a file without keys that are constants now, and with others where they are written now.

    What is dropped stays as a comment below its reason.  A key within an inline table that has others is left.

    Raises:
        tomllib.TOMLDecodeError: (a ValueError) the text is no TOML.
    """
    result, placed = Migration(), list[tuple[Path, str]]()
    leaves = set(_leaves(tomllib.loads(text)))
    for section, lines in _statements(text):
        values = _nest(section, tomllib.loads("\n".join(lines)))
        own = set(_leaves(values))
        reasons = {path: str(fault) for path, fault, _ in find_constants(values, Settings)}
        moves = dict(find_moved(values))
        reasons |= {path: f"{write_path(path)} is {write_path(to)} now" for path, to in moves.items()}
        if not reasons or lines[0].lstrip().startswith("["):
            result.lines += lines
        elif own - reasons.keys():
            result.lines += lines
            result.notes += [f"{reason} (left: change it by hand)" for reason in reasons.values()]
        else:
            result.notes += reasons.values()
            result.lines += [f"# {one}" for one in (*reasons.values(), *lines)]
            values_of = "\n".join(lines).partition("=")[2]
            placed += [(to, f"{write_path(to[-1:])} ={values_of}") for to in moves.values() if to not in leaves]
    for to, statement in placed:
        _place(result.lines, to[:-1], statement)
    return result


def _statements(text: str) -> Iterator[tuple[Path, list[str]]]:
    """Yield the section and the lines of each statement; blank lines, comments and headers are their own."""
    section: Path = ()
    lines: list[str] = []
    for line in text.splitlines():
        lines.append(line)
        try:
            values = tomllib.loads("\n".join(lines))
        except tomllib.TOMLDecodeError:  # a value goes on in the next line
            continue
        if line.lstrip().startswith("[") and len(lines) == 1:
            section = _header(values)
            yield (), lines
        else:
            yield section, lines
        lines = []


def _header(values: Any) -> Path:
    if isinstance(values, list):
        values = values[0]
    return next(((name, *_header(inside)) for name, inside in values.items()), ())


def _nest(section: Path, values: Mapping[str, Any]) -> Mapping[str, Any]:
    return values if not section else {section[0]: _nest(section[1:], values)}


def _leaves(values: Mapping[str, Any], within: Path = ()) -> Iterator[Path]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*within, name))
        else:
            yield (*within, name)


def _place(lines: list[str], section: Path, statement: str) -> None:
    """Put a statement at the head of its section, which is added at the end where there is none."""
    for at, line in enumerate(lines):
        if line.lstrip().startswith("[") and _header(tomllib.loads(line)) == section:
            lines.insert(at + 1, statement)
            return
    lines += ["", f"[{write_path(section)}]", statement]
