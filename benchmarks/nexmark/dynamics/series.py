"""What a run records of a job, over time; times in s since the beginning of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Window(NamedTuple):
    """What Tidewise measures of a job in a window; None for what is not known.

    Attributes:
        end_s: of the window.
        age_s: of the oldest record that is not through.
        formula_s: backlog / rate taken in.
        outstanding: records at the sources and in buffers.
        disturbed: whether a rescale or restart is in it.
    """

    end_s: float
    age_s: float | None
    formula_s: float | None
    outstanding: float | None
    disturbed: bool


@dataclass(slots=True)
class Series:
    """One job under one policy.

    Attributes:
        ages: (time, true age before the sink in s) every few seconds; NaN is left out.
        states: (time, parallelism of the costly vertex, the bound that it has in Flink, whether the job and all its
            vertices run).
        windows: each, in order of time.
        wishes: (time, wanted parallelism of the costly vertex, running parallelism then, verb, reason).
    """

    ages: list[tuple[float, float]] = field(default_factory=list)
    states: list[tuple[float, int, int, bool]] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    wishes: list[tuple[float, int, int, str, str]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return what :meth:`from_json` reads."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Series:
        """Return a series as it was written."""
        rows: dict[str, list[Any]] = {name: [tuple(row) for row in given[name]] for name in cls.__slots__}
        return cls(**{**rows, "windows": [Window(*row) for row in rows["windows"]]})
