"""The load that was forecast for a job, as a band over time: past forecasts beside what came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

BAND_COLUMNS = ("as_of", "operator", "bin_start", "bin_s", "q10_per_s", "q50_per_s", "q90_per_s")
FORECAST_AGE = timedelta(hours=2)
"""A forecast that was older at a time was not in use any more."""


@dataclass(frozen=True, slots=True)
class Band:
    """A bin of a forecast; rates in records/s, each the sum of that quantile over the sources.

    Attributes:
        at_s: beginning of the bin, epoch seconds.
        length_s: of the bin.
        as_of_s: when it was forecast.
    """

    at_s: float
    length_s: float
    as_of_s: float
    q10_per_s: float
    q50_per_s: float
    q90_per_s: float


def form_bands(rows: Iterable[Mapping[str, Any]], anchors: Sequence[datetime], until: datetime) -> list[Band]:
    """Return the bins from each anchor to the next, by the newest forecast that was made until then.

    A bin for which a source of the job has no quantiles is left out.
    """
    listed, result = list(rows), list[Band]()
    for since, end in pairwise([*anchors, until]):
        mine = [row for row in listed if since - FORECAST_AGE <= row["as_of"] <= since]
        as_of = max((row["as_of"] for row in mine), default=None)
        bins: dict[datetime, list[Mapping[str, Any]]] = {}
        for row in mine:
            if row["as_of"] == as_of and since <= row["bin_start"] < end:
                bins.setdefault(row["bin_start"], []).append(row)
        for at, sources in sorted(bins.items()):
            quantiles = [[row[name] for row in sources] for name in ("q10_per_s", "q50_per_s", "q90_per_s")]
            if all(value is not None for values in quantiles for value in values) and as_of is not None:
                sums = (sum(values) for values in quantiles)
                result.append(Band(at.timestamp(), float(sources[0]["bin_s"]), as_of.timestamp(), *sums))
    return result
