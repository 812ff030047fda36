"""Rows of all jobs in memory, of which those of one job are found at once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

JobKey = tuple[str, str]


class RowsByJob:
    """Rows by job, those of one in the order of some columns."""

    def __init__(self, rows: pa.Table, *order: str) -> None:
        ordered = rows.sort_by([(name, "ascending") for name in ("cluster", "job", *order)]).combine_chunks()
        self._rows = ordered.drop_columns(["cluster", "job"])
        self._slices: dict[JobKey, tuple[int, int]] = {}
        self._last: dict[JobKey, dict[str, Any]] | None = None
        if not len(ordered):
            return
        codes = [ordered[name].combine_chunks().dictionary_encode() for name in ("cluster", "job")]
        pairs = np.stack([np.asarray(one.indices) for one in codes])
        starts = np.flatnonzero(np.any(pairs[:, 1:] != pairs[:, :-1], axis=0)) + 1
        bounds = [0, *starts.tolist(), len(ordered)]
        names = [one.dictionary.to_pylist() for one in codes]
        for first, last in pairwise(bounds):
            cluster, job = (names[place][int(pairs[place, first])] for place in (0, 1))
            self._slices[cluster, job] = first, last - first

    def read(self, cluster: str, job: str) -> list[dict[str, Any]]:
        """Return the rows of a job, in their order."""
        place = self._slices.get((cluster, job))
        return [] if place is None else self._rows.slice(*place).to_pylist()

    def read_last(self) -> dict[JobKey, dict[str, Any]]:
        """Return the last row of each job."""
        if self._last is None:
            places = pa.array([first + length - 1 for first, length in self._slices.values()], pa.int64())
            self._last = dict(zip(self._slices, self._rows.take(places).to_pylist(), strict=True))
        return self._last
