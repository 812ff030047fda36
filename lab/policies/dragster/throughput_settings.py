"""Throughput functions and splitting weights that a person gives, in the symbols of Eq. 2 and 4 of Dragster.

Imports nothing heavy: settings are checked with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field

_ROUNDING = 1e-6


class GivenForm(StrEnum):
    """Form of a throughput function that is given, Eq. 2a to 2c."""

    LINEAR = "linear"
    MIN = "min"
    TANH = "tanh"


@dataclass(frozen=True, slots=True)
class GivenThroughput:
    """h_ij of an operator."""

    i: Annotated[str, Field(min_length=1, description="i: name of the operator; sources have no h")]
    k: Annotated[
        float | dict[str, float],
        Field(description="k_ij: weights of what predecessors send: one number, or a table with one for each"),
    ]
    j: Annotated[
        str | None, Field(min_length=1, description="j: name of the successor; unset: every successor alike")
    ] = None
    form: Annotated[
        GivenForm, Field(description="linear: k . e (Eq. 2a), min: min(k o e) (Eq. 2b), tanh: k1 tanh(k . e) (Eq. 2c)")
    ] = GivenForm.LINEAR
    k1: Annotated[
        float | None, Field(gt=0, le=1e12, description="k1: records/s that a tanh never exceeds; for tanh only")
    ] = None

    def __post_init__(self) -> None:
        weights = list(self.k.values()) if isinstance(self.k, dict) else [self.k]
        if not weights or not all(math.isfinite(weight) and weight > 0 for weight in weights):
            raise ValueError(f"k of operator {self.i!r} must be above 0, is {self.k}: h has to increase")
        if (self.k1 is not None) != (self.form is GivenForm.TANH):
            raise ValueError(f"operator {self.i!r}: k1 belongs to form = tanh, which needs it")


@dataclass(frozen=True, slots=True)
class GivenSplit:
    """alpha_ij of one edge."""

    i: Annotated[str, Field(min_length=1, description="i: name of the operator; sources have no alpha")]
    j: Annotated[str, Field(min_length=1, description="j: name of the successor")]
    alpha_ij: Annotated[
        float, Field(gt=0, le=1, description="share of i's capacity that serves j; those of one operator add up to 1")
    ]


def check_given(h: Iterable[GivenThroughput], alpha: Iterable[GivenSplit]) -> None:
    """Refuse what contradicts itself, whatever the job.

    Raises:
        ValueError: an edge is given twice, or the weights of an operator do not add up to 1.
    """
    successors: dict[str, list[str | None]] = {}
    for one in h:
        successors.setdefault(one.i, []).append(one.j)
    for name, given in successors.items():
        if len(given) > len(set(given)) or (None in given and len(given) > 1):
            raise ValueError(f"h of operator {name!r} is given twice; give it once for all j, or once for each")
    shares: dict[str, dict[str, float]] = {}
    for split in alpha:
        if split.j in shares.setdefault(split.i, {}):
            raise ValueError(f"alpha from {split.i!r} to {split.j!r} is given twice")
        shares[split.i][split.j] = split.alpha_ij
    for name, of_edges in shares.items():
        total = sum(of_edges.values())
        if abs(total - 1.0) > _ROUNDING:
            raise ValueError(f"alpha of operator {name!r} adds up to {total:g}; the weights of its successors make 1")
