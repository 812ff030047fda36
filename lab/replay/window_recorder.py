"""The windows of every row, kept so that the observations of a policy are slices and no copies."""

from __future__ import annotations

import numpy as np

from lab.replay.window_metrics import WindowMetrics
from models.arrays import Bools, Floats, Ints
from models.policies.observations import Observations

_MEASURES = ("in_per_s", "true_in_per_s", "busy", "backpressured", "idle", "backlog", "latency_ms")


class WindowRecorder:
    """Windows of J rows, the latest ``kept`` of them at least.

    Args:
        shape: (J, O).
        kept: windows that can still be asked for.
        windows: that there will be in all.
        start_s: epoch seconds of the first.
        window_s: their length.
        output_ratio: (O,) numRecordsOut of a vertex per record in.
        target_per_s: (W, O) records that arrive at sources in each window, NaN elsewhere; known at the broker, so the
            same for all, whether their jobs run or not.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        *,
        kept: int,
        windows: int,
        start_s: int,
        window_s: int,
        output_ratio: Floats,
        target_per_s: Floats,
    ) -> None:
        self._kept, self._size = kept, min(windows, 2 * kept)
        self._start_s, self._window_s = start_s, window_s
        self.output_ratio, self._target = output_ratio, target_per_s
        self._parallelism = np.zeros((self._size, *shape), np.int64)
        self._measures = {name: np.full((self._size, *shape), np.nan) for name in _MEASURES}
        self._disturbed = np.zeros((self._size, shape[0]), bool)
        self._dropped = 0  # windows that are kept no more
        self.count = 0

    @property
    def window_s(self) -> int:
        """Length of a window."""
        return self._window_s

    @property
    def now_s(self) -> int:
        """Epoch seconds at which the last window ended."""
        return self._start_s + self.count * self._window_s

    def add(self, metrics: WindowMetrics) -> None:
        """Keep the next window."""
        at = self.count - self._dropped
        if at == self._size:
            at = self._drop_oldest()
        self._parallelism[at] = metrics.parallelism
        for name, retained in self._measures.items():
            retained[at] = getattr(metrics, name)
        self._disturbed[at] = metrics.disturbed
        self.count += 1

    def _drop_oldest(self) -> int:
        """Move the latest windows to the front; return where the next one goes."""
        for array in (self._parallelism, self._disturbed, *self._measures.values()):
            array[: self._kept] = array[self._size - self._kept :]
        self._dropped += self._size - self._kept
        return self._kept

    def count_until(self, time_s: float) -> int:
        """Return how many windows have ended by a time, epoch seconds."""
        return int(np.clip((time_s - self._start_s) // self._window_s, 0, self.count))

    def observations(self, row: int, first: int, last: int) -> Observations:
        """Return windows ``[first, last)`` of one row; those that are kept no more are left out."""
        first = max(first, self._dropped)
        span = slice(first - self._dropped, max(last - self._dropped, first - self._dropped))
        numbers = np.arange(first, max(last, first))
        measures = {name: retained[span, row] for name, retained in self._measures.items()}
        rate, capacity = measures["in_per_s"], measures["true_in_per_s"]
        return Observations(
            window_start_s=self._start_s + self._window_s * numbers,
            window_s=self._window_s,
            parallelism=self._parallelism[span, row],
            processing_rate_per_s=rate,
            output_rate_per_s=rate * self.output_ratio,
            true_processing_rate_per_s=capacity,
            true_output_rate_per_s=capacity * self.output_ratio,
            target_data_rate_per_s=self._target[first : max(last, first)],
            busy_share=measures["busy"],
            idle_share=measures["idle"],
            backpressured_share=measures["backpressured"],
            pending_records=measures["backlog"],
            latency_ms=measures["latency_ms"],
            disturbed=self._disturbed[span, row],
        )

    def stack(self, rows: Ints, first: int, last: int) -> tuple[Ints, Ints, dict[str, Floats], Bools]:
        """Return window numbers (W,), parallelism (W, n, O), measures by name (W, n, O) and disturbed (W, n)."""
        first = max(first, self._dropped)
        span = slice(first - self._dropped, last - self._dropped)
        measures = {name: self._measures[name][span][:, rows] for name in ("in_per_s", "true_in_per_s", "busy")}
        measures["latency_ms"] = self._measures["latency_ms"][span][:, rows]
        numbers = np.arange(first, last)
        return numbers, self._parallelism[span][:, rows], measures, self._disturbed[span][:, rows]
