"""The windows of ``make run``'s lake from which capacities are learned, and how they are split in time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from benchmarks.capacity.generations import Windows
from include.settings import Training
from include.tables import OBSERVATIONS
from include.utc import DAY_S
from models.arrays import Bools
from models.training.busy_choice import choose_busy
from spark_jobs.train.job_tables import read_windows as read_job

CUTS: Final = tuple(range(1, 19))  # days before the end; no constant of the models was chosen on them
_RECORDED_TRIAL, _RECORDED_TRAINED = 0.4, 0.6  # shares of a recording of minutes


def read_windows(lake: Path, cluster: str) -> tuple[Windows, int]:
    """Return the windows of one cluster that tell capacities, and the largest parallelism of the grid."""
    table = DeltaTable(str(lake / OBSERVATIONS.relative_path)).to_pyarrow_table(filters=[("cluster", "=", cluster)])
    usable = pc.and_(pc.invert(pc.fill_null(table["disturbed"], False)), pc.is_valid(table["parallelism"]))
    owners, parts, largest = 0, [], list[int]()
    for job in sorted(set(table["job"].to_pylist())):
        measured = read_job(_as_read(table.filter(pc.and_(usable, pc.equal(table["job"], job)))))
        every = np.ones(len(measured.start_s), bool)
        chosen = choose_busy(measured, every, Training())
        parts.append((owners + chosen.operator, chosen))
        owners += len(measured.operators)
        largest += [int(chosen.parallelism.max(initial=0))] * len(measured.operators)
    owner = np.concatenate([one for one, _ in parts])
    _, place = np.unique(owner, return_inverse=True)
    windows = Windows(
        place.astype(np.int64),
        np.concatenate([one.parallelism for _, one in parts]),
        np.concatenate([one.start_s for _, one in parts]).astype(float),
        np.concatenate([one.capacity_per_s for _, one in parts]),
        np.full(int(place.max()) + 1, 128.0),
        np.array(largest, float)[np.unique(owner)],
    )
    return windows, max(64, *largest)


def _as_read(table: pa.Table) -> pa.Table:
    """Return rows of silver.observations under the names of spark_jobs.train.training_data."""
    own = {"rate_per_s": "observed_processing_rate_per_s", "output_per_s": "observed_output_rate_per_s"}
    own["true_rate_per_s"] = "true_processing_rate_per_s"
    same = ["operator", "window_s", "is_source", "parallelism"]
    same += ["busy_share", "busy_share_max", "backpressured_share"]
    columns = {name: table[name] for name in same} | {name: table[column] for name, column in own.items()}
    columns["latency_ms"] = pc.multiply(table["age_s"], 1000.0)
    start_s = pc.cast(
        pc.divide(pc.cast(pc.cast(table["window_start"], pa.timestamp("us")), pa.int64()), 10**6), pa.int64()
    )
    demand = pc.invert(pc.fill_null(table["target_is_lower_bound"], False))
    return pa.table(columns | {"start_s": start_s, "is_demand": demand})


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
