"""What a Python worker knows of jobs beside their metrics, and looks up for each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from models.arrays import Ints
from spark_jobs.by_job import find_keys
from spark_jobs.job_history.job_shapes import JobShapes
from spark_jobs.job_history.stop_effects import StopSpans
from spark_jobs.job_history.vertex_rows import VERTEX_KEY

_ID = ("cluster", "job_id")
_VERTEX = (*_ID, "vertex_id")
_LIMITS = np.iinfo(np.int64)


class ValidityPeriods:
    """Rows that hold for a key, columns of text, from one time to another, null: no bound; no two of a key at once."""

    def __init__(self, rows: pa.Table, key: Sequence[str], since: str, until: str) -> None:
        self._key = tuple(key)
        keys = list(zip(*(rows[name].to_pylist() for name in key), strict=True))
        self._places = {one: place for place, one in enumerate(dict.fromkeys(keys))}
        since_us, until_us = _times_us(rows[since], _LIMITS.min), _times_us(rows[until], _LIMITS.max)
        self._starts = np.unique(since_us)
        rank = self._rank(np.array([self._places[one] for one in keys], np.int64), since_us)
        self._order = np.lexsort((until_us, rank))
        self._ranks, self._until_us = rank[self._order], until_us[self._order]

    def find(self, rows: pa.Table, at_us: Ints) -> Ints:
        """Return (n,) the index of the row that holds for each of some rows at its time, -1 without any."""
        if not len(self._order):
            return np.full(len(rows), -1)
        places = find_keys(rows, self._key, self._places)
        last = np.searchsorted(self._ranks, self._rank(places, at_us), "right") - 1
        is_own = (places >= 0) & (last >= 0) & (self._ranks[last] // (len(self._starts) + 1) == places)
        return np.where(is_own & (at_us < self._until_us[last]), self._order[last], -1)

    def _rank(self, places: Ints, at_us: Ints) -> Ints:
        """Return numbers in the order of keys, and of times within a key."""
        return np.asarray(places * (len(self._starts) + 1) + np.searchsorted(self._starts, at_us, "right"))


def _times_us(times: pa.ChunkedArray, unknown: int) -> Ints:
    return np.asarray(pc.fill_null(times.cast(pa.int64()), unknown), np.int64)


class KnownJobs:
    """What is known of all jobs.

    Attributes:
        vertices: ``VERTEX_KEY`` of each vertex under each of its names, in their order.
        vertex: (names,) the vertex of each name.
        parallelism: (changes,) the parallelism of each period.

    Args:
        names: of :func:`spark_jobs.job_history.operator_names.name_operators`, with ``is_source``.
        changes: of :func:`spark_jobs.job_history.job_replies.find_parallelism_periods`.
        unsettled: of :func:`spark_jobs.job_history.disturbances.find_unsettled_windows`.
        windows_s: length of a window of every cluster that ``names`` has.
        shapes: of jobs.
        stops: whose effects are looked for.
    """

    def __init__(
        self,
        names: pa.Table,
        changes: pa.Table,
        unsettled: pa.Table,
        *,
        windows_s: Mapping[str, int],
        shapes: JobShapes,
        stops: StopSpans,
    ) -> None:
        lengths = pa.array([windows_s[cluster] for cluster in names["cluster"].to_pylist()], pa.int32())
        columns = names.append_column("window_s", lengths).select(VERTEX_KEY)
        texts = list(zip(*columns.to_pydict().values(), strict=True))
        first = {text: row for row, text in reversed(list(enumerate(texts)))}
        place = {text: at for at, text in enumerate(sorted(first))}
        exact = unsettled.append_column("after", pc.add(unsettled["window_start"].cast(pa.int64()), 1))
        self.vertices = columns.take(pa.array([first[text] for text in place], pa.int64()))
        self.vertex = np.array([place[text] for text in texts], np.int64)
        self.parallelism = np.asarray(changes["parallelism"], np.int64)
        self.names = ValidityPeriods(names, _VERTEX, "named_from", "named_until")
        self.runs = ValidityPeriods(changes, _VERTEX, "valid_from", "valid_to")
        self.unsettled = ValidityPeriods(exact, _ID, "window_start", "after")
        self.shapes, self.stops = shapes, stops
