"""From what happened to the figures of the tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.papers.cells import Cell
from benchmarks.papers.dragster.dragster_experiments import SLOT_S, SLOTS_PER_H, Record, is_near, slots_to_converge
from include.settings import PROJECT
from models.arrays import Floats

SLOT_MIN = SLOT_S / 60
# The budget of 1.6 $/h holds 8 pods, and tuples times cost give 15, 11 and 13 pods at ten times this price: Table 2
# has a factor of ten in it (either 1e8 tuples, or dollars).
POD_USD_PER_H = 0.1841
TABLE_FACTOR = 10.0


def read_published() -> dict[str, Any]:
    """Return the paper's figures."""
    result: dict[str, Any] = json.loads((PROJECT / "data" / "papers" / "dragster.json").read_text())
    return result


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of constant load of every run.

    Attributes:
        record: of the slots of the interval.
        scaled_down: the load fell at its start, so that the end is reached when pods stop falling.
    """

    record: Record
    scaled_down: bool = False

    @property
    def converged_slot(self) -> npt.NDArray[np.int64]:
        """(R,) first slot from which throughput stays within 10% of the best; T + 1 if it does not.

        After a fall of the load throughput is always there; then the number of pods, too, must stay within one of the
        interval's second half.
        """
        record = self.record
        good = is_near(record.rate_per_s, float(record.offered_per_s[0]))
        if self.scaled_down:
            half = record.pods.shape[1] // 2
            end = np.median(record.pods[:, half:], axis=1, keepdims=True)
            good = good & (abs(record.pods - end) <= 1)
        return np.array([slots_to_converge(row) for row in good])

    @property
    def arrived_slot(self) -> npt.NDArray[np.int64]:
        """(R,) first slot near the best throughput with pods within one of those usual in the end; T + 1 if none.

        The milder reading of convergence ("can arrive in the optimum", Section 6.3): later exploration is allowed.
        """
        record = self.record
        usual = usual_configuration(record).sum(axis=1)[:, None]
        good = is_near(record.rate_per_s, float(record.offered_per_s[0])) & (abs(record.pods - usual) <= 1)
        return np.asarray(np.where(good.any(axis=1), good.argmax(axis=1), good.shape[1]) + 1, np.int64)

    @property
    def tuples_1e9(self) -> Floats:
        """(R,) records processed."""
        return np.asarray(self.record.rate_per_s.sum(axis=1) * SLOT_S / 1e9)

    @property
    def usd_per_1e9(self) -> Floats:
        """(R,) price of the pods per 1e9 records, with the table's factor."""
        return np.asarray(self.record.pods.sum(axis=1) / SLOTS_PER_H * POD_USD_PER_H * TABLE_FACTOR / self.tuples_1e9)


def slots(record: Record, first: int, end: int) -> Record:
    """Return some of the slots of a record."""
    return Record(
        record.tasks[:, first:end],
        record.rate_per_s[:, first:end],
        record.steady_per_s[:, first:end],
        record.offered_per_s[first:end],
        record.capacity_per_s[:, first:end],
    )


def runs_of(record: Record, first: int, end: int) -> Record:
    """Return some of the runs of a record."""
    return Record(
        record.tasks[first:end],
        record.rate_per_s[first:end],
        record.steady_per_s[first:end],
        record.offered_per_s,
        record.capacity_per_s[first:end],
    )


def usual_configuration(record: Record) -> npt.NDArray[np.int64]:
    """Return (R, M) the configuration that each run has most often in its second half."""
    half = record.tasks.shape[1] // 2
    result = []
    for run in record.tasks[:, half:]:
        rows, counts = np.unique(run, axis=0, return_counts=True)
        result.append(rows[counts.argmax()])
    return np.array(result, np.int64)


def cell(
    table: str, row: str, column: str, values: npt.ArrayLike, unit: str, *, paper_value: float | None = None
) -> Cell:
    """Return the mean of a figure over runs beside the published one."""
    runs = np.atleast_1d(np.asarray(values, float))
    spread = float(runs.std(ddof=1)) if len(runs) > 1 else None
    return Cell("dragster", table, row, column, float(runs.mean()), paper_value, unit, len(runs), spread)


ROWS: Mapping[str, str] = {
    "Dhalion": "Dhalion",
    "saddle": "Dragster saddle point",
    "gradient": "Dragster online gradient",
}
