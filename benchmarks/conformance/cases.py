"""Cases of rules: an input, what a rule must make of it, and how the two are compared."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = Mapping[str, Any]
ABSENT = "(not produced)"
# What a case with fields of the wrong type or value can cause.
FAULTS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
_RELATIVE = 1e-6


class CaseFileError(ValueError):
    """A file that holds no cases of the format."""


class CaseError(ValueError):
    """A single case that cannot be run: an unknown kind, a missing or wrong field."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one case.

    Attributes:
        name: of the case.
        expected: what the case asks for.
        got: what the rule gave, or ``{"error": ...}``.
        differing: where the two differ; empty when they agree.
    """

    name: str
    expected: Any
    got: Any
    differing: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether the rule gave what was asked for."""
        return not self.differing


def read_list(path: Path) -> list[Json]:
    """Return the cases of a JSON file: a list, or an object with a list under ``cases``.

    Raises:
        CaseFileError: not such a file.
    """
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise CaseFileError(f"{path} is not JSON: {error}") from None
    return objects(path, content.get("cases") if isinstance(content, dict) else content)


def read_lines(path: Path) -> list[Json]:
    """Return the cases of a file with one JSON object on each line.

    Raises:
        CaseFileError: not such a file.
    """
    result = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            try:
                result.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise CaseFileError(f"{path}, line {number}, is not JSON: {error}") from None
    return objects(path, result)


def read_text(path: Path) -> str:
    """Return a file's text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CaseFileError(f"cannot read {path}: {error}") from None


def objects(path: Path, content: object) -> list[Json]:
    """Return the cases, refusing anything but a list of at least one object."""
    if not isinstance(content, list) or not content:
        raise CaseFileError(f"{path} holds no list of cases")
    for number, case in enumerate(content, start=1):
        if not isinstance(case, dict):
            raise CaseFileError(f"{path}: case {number} is not an object")
    return content


def attempt(run: Callable[[Json], Any], case: Json) -> Any:
    """Return what a rule gives for a case, or the error as ``{"error": message}``."""
    try:
        return run(case)
    except FAULTS as error:
        return {"error": describe(error)}


def describe(error: Exception) -> str:
    """Return what is wrong with a case, for its author."""
    return f"the case lacks {error}" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"


def number(raw: Any) -> float:
    """Return a number that a case may write as ``"inf"``, ``"nan"`` or null (not known)."""
    if raw is None:
        return math.nan
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        raise CaseError(f"{raw!r} is no number")
    return float(raw)


def differences(expected: Any, got: Any, path: str = "") -> Iterable[str]:
    """Yield the paths at which a result is not what was expected; what was not asked for is not looked at."""
    if isinstance(expected, dict):
        for key, wanted in expected.items():
            inside = got.get(key, ABSENT) if isinstance(got, dict) else ABSENT
            yield from differences(wanted, inside, f"{path}.{key}" if path else str(key))
    elif isinstance(expected, list):
        if not isinstance(got, list) or len(got) != len(expected):
            yield path
            return
        for index, (wanted, inside) in enumerate(zip(expected, got, strict=True)):
            yield from differences(wanted, inside, f"{path}[{index}]")
    elif not same(expected, got):
        yield path


def same(expected: Any, got: Any) -> bool:
    """Return whether two plain values are equal; numbers that are not both whole to a relative 1e-6."""
    if isinstance(expected, bool) or isinstance(got, bool) or expected is None or got is None:
        return expected is got
    try:
        wanted, result = float(expected), float(got)
    except (TypeError, ValueError):
        return bool(expected == got)
    if isinstance(expected, int) and isinstance(got, int):
        return expected == got
    if math.isnan(wanted) or math.isnan(result):
        return math.isnan(wanted) and math.isnan(result)
    return math.isclose(wanted, result, rel_tol=_RELATIVE, abs_tol=_RELATIVE)
