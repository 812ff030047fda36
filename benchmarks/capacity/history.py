"""The windows of ``make run``'s lake from which capacities are learned, and how they are split in time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from deltalake import DeltaTable

from benchmarks.capacity.generations import Windows
from include.utc import DAY_S
from models.arrays import Bools

CUTS: Final = tuple(range(1, 19))  # days before the end; no constant of the models was chosen on them
MIN_BUSY_SHARE: Final = 0.15
EVEN_LOAD: Final = 1.1
_RECORDED_TRIAL, _RECORDED_TRAINED = 0.4, 0.6  # shares of a recording of minutes
_COLUMNS: Final = (
    "job",
    "operator",
    "window_start",
    "parallelism",
    "true_processing_rate_per_s",
    "busy_share",
    "busy_share_max",
    "disturbed",
)


def read_windows(lake: Path, cluster: str) -> tuple[Windows, int]:
    """Return the busy, undisturbed windows of one cluster and the largest parallelism of the grid."""
    table = DeltaTable(str(lake / "silver" / "observations"))
    rows = table.to_pandas(columns=list(_COLUMNS), filters=[("cluster", "=", cluster)])
    rate, busy = rows["true_processing_rate_per_s"], rows["busy_share"]
    rows = rows[
        ~rows["disturbed"].fillna(value=False).astype(bool) & rows["parallelism"].notna() & (rate > 0) & (busy > 0)
    ]
    name = rows["job"] + "/" + rows["operator"]
    busiest = rows.groupby(name)["busy_share"].transform("max")
    idle = busiest < MIN_BUSY_SHARE
    rows = rows[~idle & (rows["busy_share"] >= MIN_BUSY_SHARE)].sort_values("window_start", ignore_index=True)
    owner = pd.factorize(rows["job"] + "/" + rows["operator"])[0].astype(np.int64)
    skew = np.maximum(rows["busy_share_max"].fillna(0.0) / rows["busy_share"] / EVEN_LOAD, 1.0)
    operators = int(owner.max()) + 1
    largest = rows.groupby("job")["parallelism"].transform("max").to_numpy(float)
    of_job = np.zeros(operators)
    np.maximum.at(of_job, owner, largest)
    windows = Windows(
        owner,
        rows["parallelism"].to_numpy(np.int64),
        rows["window_start"].astype("int64").to_numpy(float) / _per_second(rows["window_start"]),
        (rows["true_processing_rate_per_s"] / skew).to_numpy(float),
        np.full(operators, 128.0),
        of_job,
    )
    return windows, int(max(64, of_job.max()))


def _per_second(times: pd.Series) -> float:
    return float(pd.Timedelta(seconds=1) / pd.Timedelta(1, unit=times.dt.unit))


def split_in_time(windows: Windows) -> Iterator[tuple[Bools, Bools, Bools]]:
    """Yield which windows a trial is made of, which it predicts, and which are tested: none overlap."""
    at, end = windows.timestamp, float(windows.timestamp.max())
    span = end - float(at.min())
    if span < DAY_S:
        first, second = (end - (1.0 - share) * span for share in (_RECORDED_TRIAL, _RECORDED_TRAINED))
        yield at < first, (at >= first) & (at < second), at >= second
        return
    for days in CUTS:
        cut = end - days * DAY_S
        if cut - at.min() > 2 * DAY_S:
            yield at < cut - DAY_S, (at >= cut - DAY_S) & (at < cut), (at >= cut) & (at < cut + DAY_S)
