"""Output of an operator as a function of its input: the throughput functions of Eq. 2 of Dragster.

All are increasing and concave.  Rates are records/s; a weight is records out per record in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from models.arrays import Floats


class ThroughputFunction(Protocol):
    """h of one edge: what would flow along it if the operator's capacity did not limit."""

    def __call__(self, received_per_s: Floats) -> float:
        """Return records/s out for (P,) records/s in, one per predecessor."""
        ...


@dataclass(frozen=True, slots=True)
class Linear:
    """h(e) = k . e, Eq. 2a: every predecessor's records count with their own weight.

    Attributes:
        weights: (P,) one per predecessor, or one value for all of them.
    """

    weights: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        _check(self.weights)

    def __call__(self, received_per_s: Floats) -> float:
        """Return records/s out for (P,) records/s in."""
        return float((_each(self.weights, received_per_s) * received_per_s).sum())


@dataclass(frozen=True, slots=True)
class Share:
    """The part of an operator's output that goes over one of its edges.

    Attributes:
        whole: h of the operator's whole output.
        share: over the edge per record of the whole output.
    """

    whole: ThroughputFunction
    share: float

    def __call__(self, received_per_s: Floats) -> float:
        """Return records/s out for (P,) records/s in."""
        return self.share * self.whole(received_per_s)


@dataclass(frozen=True, slots=True)
class Minimum:
    """h(e) = min(k o e), Eq. 2b: a join goes as fast as the slowest of what it joins.

    Attributes:
        weights: (P,) one per predecessor, or one value for all of them.
    """

    weights: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        _check(self.weights)

    def __call__(self, received_per_s: Floats) -> float:
        """Return records/s out for (P,) records/s in."""
        weighted = _each(self.weights, received_per_s) * received_per_s
        return float(weighted.min()) if weighted.size else 0.0


@dataclass(frozen=True, slots=True)
class Tanh:
    """h(e) = k1 tanh(k . e), Eq. 2c: output that saturates.

    Attributes:
        ceiling_per_s: k1, records/s that it never exceeds.
        weights: (P,) k in 1 / (records/s), one per predecessor, or one value for all of them.
    """

    ceiling_per_s: float
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        _check((self.ceiling_per_s, *self.weights))

    def __call__(self, received_per_s: Floats) -> float:
        """Return records/s out for (P,) records/s in."""
        return self.ceiling_per_s * math.tanh(float((_each(self.weights, received_per_s) * received_per_s).sum()))


def _each(weights: tuple[float, ...], received: Floats) -> Floats:
    if len(weights) not in (1, len(received)):
        raise ValueError(f"{len(weights)} weights for {len(received)} predecessors; give one, or one for each")
    return np.broadcast_to(np.array(weights), received.shape)


def _check(weights: tuple[float, ...]) -> None:
    if not weights or not all(math.isfinite(weight) and weight >= 0 for weight in weights):
        raise ValueError(f"weights must be finite and not negative, are {weights}; a falling function is not allowed")
