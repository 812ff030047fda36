"""Forecasts of all jobs' load as arrays: what was forecast for a time, all sources of a job together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from controller.view.plan_rows import LoadBand

COLUMNS = ("cluster", "job", "operator", "forecast_version", "bin_start", "q50_per_s", "q90_per_s")
_SERIES = ["cluster", "job", "forecast_version", "operator"]


@dataclass(frozen=True)
class LoadForecasts:
    """Forecasts of several sources, sorted by series and bin.

    Attributes:
        bin_start_s, q50_per_s, q90_per_s: one value per source and bin.
        series: cluster, job and forecast version -> where each of its sources begins and ends in those.
    """

    bin_start_s: NDArray[np.float64]
    q50_per_s: NDArray[np.float64]
    q90_per_s: NDArray[np.float64]
    series: dict[tuple[str, str, str], list[tuple[int, int]]]

    def load_band(self, cluster: str, job: str, forecast_version: str | None, at_s: float) -> LoadBand | None:
        """Return what a forecast says for a time; None when it is not known.

        The bin that holds the time counts; a time before the forecast began is in its first bin.
        """
        sources = self.series.get((cluster, job, forecast_version or ""))
        if not sources:
            return None
        places = [
            begin + max(0, int(np.searchsorted(self.bin_start_s[begin:end], at_s, side="left")) - 1)
            for begin, end in sources
        ]
        return LoadBand(float(self.q50_per_s[places].sum()), float(self.q90_per_s[places].sum()))


NO_FORECASTS = LoadForecasts(np.empty(0), np.empty(0), np.empty(0), {})
"""Where none can be read."""


def forecasts_of(rows: pa.Table) -> LoadForecasts:
    """Return forecasts from rows of ``gold.forecasts`` with :data:`COLUMNS`."""
    ordered = rows.sort_by([(name, "ascending") for name in (*_SERIES, "bin_start")])
    numbered = ordered.append_column("place", pa.array(np.arange(len(ordered))))
    ends = numbered.group_by(_SERIES).aggregate([("place", "min"), ("place", "max")])
    series: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    for row in ends.to_pylist():
        key = (row["cluster"], row["job"], row["forecast_version"] or "")
        series.setdefault(key, []).append((row["place_min"], row["place_max"] + 1))
    bin_start_us = pc.cast(pc.cast(ordered.column("bin_start"), pa.timestamp("us", tz="UTC")), pa.int64())
    quantiles = {name: ordered.column(name).to_numpy().astype(float) for name in ("q50_per_s", "q90_per_s")}
    return LoadForecasts(bin_start_us.to_numpy() / 1e6, quantiles["q50_per_s"], quantiles["q90_per_s"], series)
