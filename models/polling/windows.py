"""The windows of all rows at once, from the polls that are kept: those of :mod:`models.observing.windows`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Ints
from models.observing.samples import Polls, Vertices, count_differences
from models.observing.windows import Windows, build_windows
from models.polling.ring_buffers import RingBuffers


@dataclass(frozen=True, slots=True)
class RowWindows:
    """Windows of rows.

    Attributes:
        windows: G of them; ``vertex`` is the row.
        parallelism: (G,) at the end of the window, 0 where it was not seen.
    """

    windows: Windows
    parallelism: Ints


def row_windows(samples: RingBuffers, parallelism: RingBuffers, vertices: Vertices, now_s: float) -> RowWindows:
    """Return the windows that ended, of which every poll is kept.

    Args:
        samples: (rows) of :data:`models.observing.metric_table.COLUMNS`, only those that are a measurement.
        parallelism: (rows) its changes.
        vertices: (rows,)
        now_s: epoch seconds; windows that end later are left out.
    """
    row, times_ms, values = samples.all_entries()
    result = build_windows(count_differences(Polls(row, 1000 * times_ms, values), vertices), vertices)
    has_ended = result.start_s + vertices.window_s[result.vertex] <= now_s
    # The window of the oldest poll has lost polls when one was overwritten.
    is_oldest = np.diff(result.vertex, prepend=-1) != 0
    ended = result.of(has_ended & ~(is_oldest & samples.is_overwritten()[result.vertex]))
    end_ms = 1000 * (ended.start_s + vertices.window_s[ended.vertex])
    last = parallelism.values_before(0, ended.vertex, end_ms)
    return RowWindows(ended, np.nan_to_num(last).astype(np.int64))
