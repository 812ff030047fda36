"""The load that was forecast for a job, as a band over time: past forecasts beside what came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BAND_COLUMNS = ("as_of", "cluster", "job", "bin_start", "bin_s", "q10_per_s", "q50_per_s", "q90_per_s")
FORECAST_AGE = timedelta(hours=2)
"""A forecast that was older at a time was not in use any more."""
_QUANTILES = ("q10_per_s", "q50_per_s", "q90_per_s")


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


def sum_sources(forecasts: pa.Table) -> pa.Table:
    """Return a row for each bin of a job's newest forecast, from rows of its sources with :data:`BAND_COLUMNS`.

    A bin for which a source has no quantiles is left out.
    """
    newest = forecasts.group_by(["cluster", "job"]).aggregate([("as_of", "max")])
    joined = forecasts.join(newest, keys=["cluster", "job"])
    rows = joined.filter(pc.equal(joined["as_of"], joined["as_of_max"]))
    figures = [(name, kind) for name in _QUANTILES for kind in ("sum", "count")]
    keys = ["cluster", "job", "bin_start", "bin_s", "as_of"]
    result = rows.group_by(keys).aggregate([*figures, ([], "count_all")])
    is_whole = pc.equal(result["q10_per_s_count"], result["count_all"])
    for name in _QUANTILES[1:]:
        is_whole = pc.and_(is_whole, pc.equal(result[f"{name}_count"], result["count_all"]))
    return result.filter(is_whole)


def coarsen_bins(bins: pa.Table) -> pa.Table:
    """Return rows of :func:`sum_sources` in half hours, with the means of their quantiles."""
    columns = {name: bins[name] for name in ("cluster", "job", "as_of", *(f"{name}_sum" for name in _QUANTILES))}
    columns["bin_start"] = pc.floor_temporal(bins["bin_start"], multiple=30, unit="minute")
    keys = ["cluster", "job", "bin_start", "as_of"]
    made = pa.table(columns).group_by(keys).aggregate([(f"{name}_sum", "mean") for name in _QUANTILES])
    renamed = made.rename_columns([name.removesuffix("_mean") for name in made.column_names])
    return renamed.append_column("bin_s", pa.array(np.full(len(made), 1800)))


def band_of(row: Mapping[str, Any]) -> Band:
    """Return a row of :func:`sum_sources` as a band."""
    quantiles = (row[f"{name}_sum"] for name in _QUANTILES)
    return Band(row["bin_start"].timestamp(), float(row["bin_s"]), row["as_of"].timestamp(), *quantiles)
