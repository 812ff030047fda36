"""What slots and lateness trade for on a job's own last days: the file that the laboratory's ``advise`` leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = "goals.json"


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """What a policy took in a day, in the mean of the days.

    Attributes:
        label: a named goal, or what the policy aims at.
    """

    label: str
    slot_hours: float
    late_minutes: float
    rescales: float


@dataclass(frozen=True, slots=True)
class PolicyCurve:
    """A policy over the weight of its late minutes, or over its headroom."""

    policy: str
    title: str
    points: tuple[FrontierPoint, ...]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> PolicyCurve:
        """Return the curve that JSON holds."""
        return cls(values["policy"], values["title"], tuple(FrontierPoint(**one) for one in values["points"]))


@dataclass(frozen=True, slots=True)
class Frontier:
    """The curves of a job, or of all together; the first is that of the named goals.

    Attributes:
        as_of: end of the days, ISO 8601.
    """

    as_of: str
    days: int
    curves: tuple[PolicyCurve, ...]


def read_frontier(out: Path, cluster: str, job: str) -> Frontier | None:
    """Return the frontier of a job as it was made last; None where none was, or it cannot be read."""
    try:
        made = json.loads((out / FILE).read_text(encoding="utf-8"))
        curves = made["jobs"][f"{cluster}/{job}"]
        return Frontier(made["as_of"], made["days"], tuple(map(PolicyCurve.of, curves)))
    except (OSError, ValueError, KeyError, TypeError):
        return None
