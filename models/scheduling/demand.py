"""Demand of every operator: the forecast of the sources, propagated through the job graph.

| name | meaning | shape |
| --- | --- | --- |
| L | quantile levels of a forecast, ``LEVELS`` | |
| S, O, T | sources, operators, bins | |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

from include.domain.graph import JobGraph
from models.arrays import Bools, Floats, Ints
from models.topology import Edge, required_rates

LEVELS = (0.1, 0.5, 0.9, 0.95)
MEDIAN = LEVELS.index(0.5)
SCORES = ndtri(np.array(LEVELS))


class DemandError(ValueError):
    """A forecast from which no demand can be made; the message says why."""


@dataclass(frozen=True, slots=True)
class SourceForecast:
    """Quantiles of the sources' rates on one regular grid of bins.

    Attributes:
        start_s: epoch seconds at which the first bin begins.
        bin_s: length of a bin, s.
        quantiles: source -> (L, T) records/s at ``LEVELS``.
        fallback: why it is no forecast to plan ahead with, such as a history shorter than a season; None when it is.
        factor: source -> (T,) median with the events that people know of over the one without; empty without any.
        spread: source -> (T,) standard deviation of the logarithm of what these are uncertain of; empty without any.
    """

    start_s: int
    bin_s: int
    quantiles: Mapping[str, Floats]
    fallback: str | None = None
    factor: Mapping[str, Floats] = field(default_factory=dict)
    spread: Mapping[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shapes = {values.shape for values in self.quantiles.values()}
        if len(shapes) != 1 or next(iter(shapes))[0] != len(LEVELS) or next(iter(shapes))[1] == 0:
            raise DemandError(f"quantiles must share one shape ({len(LEVELS)}, bins >= 1), found {sorted(shapes)}")
        bad = sorted(
            source for source, values in self.quantiles.items() if not (np.isfinite(values) & (values >= 0)).all()
        )
        if bad:
            raise DemandError(f"forecast of {bad} has missing, infinite or negative rates")

    @property
    def bins(self) -> int:
        """Number of bins."""
        return int(next(iter(self.quantiles.values())).shape[1])

    @property
    def end_s(self) -> int:
        """Epoch seconds at which the last bin ends."""
        return self.start_s + self.bins * self.bin_s


@dataclass(frozen=True, slots=True)
class Demand:
    """Input rates of every operator per quantile level and bin.

    Attributes:
        start_s, bin_s: the grid of bins, epoch seconds and s.
        operators: (O,) names in topological order.
        load_per_s: (L, T) all sources together, records/s.
        rates_per_s: (L, O, T) input of each operator, a source from outside, records/s; NaN for an operator whose share
            of the records is not known: it limits nothing, and nothing rises or falls for it.
    """

    start_s: int
    bin_s: int
    operators: tuple[str, ...]
    load_per_s: Floats
    rates_per_s: Floats

    @property
    def bins(self) -> int:
        """Number of bins."""
        return int(self.load_per_s.shape[1])

    @property
    def is_known(self) -> Bools:
        """(O,) whether an operator's demand is known in every bin."""
        return np.asarray(np.isfinite(self.rates_per_s).all(axis=(0, 2)))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Operators whose demand is not known."""
        return tuple(name for name, known in zip(self.operators, self.is_known, strict=True) if not known)

    def bin_start_s(self, index: int) -> int:
        """Return the epoch seconds at which a bin begins (``bins`` gives the end of the horizon)."""
        return self.start_s + index * self.bin_s


def quantiles_at_scores(values: Floats, scores: Floats) -> Floats:
    """Return (Z, ...) quantiles, never negative, at (Z,) standard normal scores, from (L, ...) quantiles at ``LEVELS``.

    Linear in the standard normal score, so that a normal load is read exactly; the outer slopes continue.
    """
    remaining = np.clip(np.searchsorted(SCORES, scores, side="right") - 1, 0, len(SCORES) - 2)
    share = (scores - SCORES[remaining]) / (SCORES[remaining + 1] - SCORES[remaining])
    share = share.reshape(-1, *([1] * (values.ndim - 1)))
    return np.asarray(np.maximum(values[remaining] * (1 - share) + values[remaining + 1] * share, 0.0))


def resample_to_bins(forecast: SourceForecast, as_of_s: int, bin_s: int, horizon_s: int) -> SourceForecast:
    """Bring a forecast to the planner's bins: the highest of the forecast bins that a bin touches.

    Bins lie on multiples of ``bin_s``; the first holds ``as_of_s``, or the forecast's start when that is later.

    Raises:
        DemandError: the forecast ends before ``as_of_s``.
    """
    start_s = max(as_of_s, forecast.start_s) // bin_s * bin_s
    bins = math.ceil((min(forecast.end_s, as_of_s + horizon_s) - start_s) / bin_s)
    if forecast.end_s <= as_of_s or bins < 1:
        raise DemandError("the forecast ends before the plan begins")
    begins = start_s + bin_s * np.arange(bins)
    first: Ints = np.clip((begins - forecast.start_s) // forecast.bin_s, 0, forecast.bins - 1)
    last: Ints = np.clip(-((forecast.start_s - begins - bin_s) // forecast.bin_s), first + 1, forecast.bins)
    edges = np.stack([first, last], axis=1).ravel()
    # reduceat wants indices below the length: one column more, which no range includes.
    highest = {
        source: np.maximum.reduceat(np.pad(values, ((0, 0), (0, 1))), edges, axis=1)[:, ::2]
        for source, values in forecast.quantiles.items()
    }
    return SourceForecast(start_s, bin_s, highest)


def demand(graph: JobGraph, edge_ratios: Mapping[Edge, float], forecast: SourceForecast) -> Demand:
    """Propagate the sources' quantiles through the graph (Eq. 7-8 of DS2).

    Sources are taken to be high together (comonotone): the quantile of a sum is the sum of the quantiles, which is
    the careful reading of forecasts that are made per source.
    """
    shape = (len(LEVELS), forecast.bins)
    flat = {source: values.ravel() for source, values in forecast.quantiles.items()}
    required = required_rates(graph, edge_ratios, flat)
    rates = np.stack([required[name].reshape(shape) for name in graph.names], axis=1)
    load = np.sum(np.stack(list(forecast.quantiles.values())), axis=0)
    return Demand(forecast.start_s, forecast.bin_s, graph.names, load, rates)
