"""What a check has found, and what to do about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

_CREDENTIALS = re.compile(r"//[^/@\s]+@")


class Level(StrEnum):
    """How bad a finding is: an error keeps Tidewise from working, a warning makes it work less well."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor.

    Attributes:
        part: what was looked at: Java, cluster prod, lake.
        check: which property of it.
        remedy: what to do; empty when all is well.
    """

    part: str
    check: str
    level: Level
    text: str
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the finding as values of JSON."""
        return {name: hide_credentials(str(value)) for name, value in asdict(self).items()}


def ok(part: str, check: str, text: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(part, check, Level.OK, text)


def warning(part: str, check: str, text: str, remedy: str) -> Finding:
    """Return a finding that something works less well than it could."""
    return Finding(part, check, Level.WARNING, text, remedy)


def error(part: str, check: str, text: str, remedy: str) -> Finding:
    """Return a finding that something does not work."""
    return Finding(part, check, Level.ERROR, text, remedy)


def count_levels(findings: Iterable[Finding]) -> dict[str, int]:
    """Return level -> number of findings, every level named."""
    result = Counter(one.level for one in findings)
    return {str(level): result[level] for level in Level}


def hide_credentials(text: str) -> str:
    """Return a text on one line, without the user and password of a URL in it."""
    return _CREDENTIALS.sub("//...@", " ".join(text.split()))


def list_names(names: Iterable[str], most: int = 5) -> str:
    """Return the first names of a list and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return f"{', '.join(listed[:most])}{more}"
