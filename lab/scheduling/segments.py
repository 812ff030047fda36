"""Segments of a horizon, each in one configuration."""

from __future__ import annotations

from dataclasses import dataclass

from models.arrays import Ints


@dataclass(frozen=True, slots=True)
class Segment:
    """Bins ``[begin, end)`` in one configuration.

    Attributes:
        parallelism: (O,) of each operator.
        held: the running configuration goes on: no rescale at ``begin``.
    """

    begin: int
    end: int
    parallelism: Ints
    held: bool
