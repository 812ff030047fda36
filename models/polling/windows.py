"""The windows of all rows at once, from the polls that are kept: those of :mod:`models.observing.windows`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from models.arrays import Ints
from models.observing.ages import JobRows, find_outstanding
from models.observing.outstanding import OutstandingRecords
from models.observing.samples import Polls, Samples, Vertices, count_differences
from models.observing.windows import Windows, build_windows, last_known
from models.polling.ring_buffers import RingBuffers


@dataclass(frozen=True, slots=True)
class RowWindows:
    """Windows of rows.

    Attributes:
        windows: G of them; ``vertex`` is the row.
        parallelism: (G,) at the end of the window, 0 where it was not seen.
        outstanding: (G,) of a source, at the last poll of the window that tells it.
    """

    windows: Windows
    parallelism: Ints
    outstanding: OutstandingRecords


def count_polls(
    samples: RingBuffers, vertices: Vertices, jobs: Iterable[JobRows]
) -> tuple[Samples, OutstandingRecords]:
    """Return the samples of all polls that are a measurement, and what is outstanding at each, of jobs with a graph."""
    row, times_ms, values = samples.all_entries()
    counted = count_differences(Polls(row, 1000 * times_ms, values), vertices)
    return counted, find_outstanding(counted, vertices, jobs)


def row_windows(
    samples: RingBuffers,
    parallelism: RingBuffers,
    vertices: Vertices,
    polled: tuple[Samples, OutstandingRecords],
    now_s: float,
) -> RowWindows:
    """Return the windows that ended by ``now_s``, of which every poll is kept; ``polled`` is of :func:`count_polls`."""
    counted, outstanding = polled
    result = build_windows(counted, vertices, outstanding.arriving_per_s)
    has_ended = result.start_s + vertices.window_s[result.vertex] <= now_s
    # The window of the oldest poll has lost polls when one was overwritten.
    is_oldest = np.diff(result.vertex, prepend=-1) != 0
    is_given = has_ended & ~(is_oldest & samples.is_overwritten()[result.vertex])
    ended = result.of(is_given)
    end_ms = 1000 * (ended.start_s + vertices.window_s[ended.vertex])
    last = parallelism.values_before(0, ended.vertex, end_ms)
    given = outstanding.change(lambda values: last_known(counted.polls, vertices, values)[is_given])
    return RowWindows(ended, np.nan_to_num(last).astype(np.int64), given)
