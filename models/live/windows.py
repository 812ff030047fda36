"""The arithmetic of ``silver.observations`` over all rows at once: polls to differences to windows to rates.

A row is one vertex of one job.  Rates come from the differences of Flink's counters.  A counter that fell was
restarted: what was counted across the restart is unknown, so that difference is left out rather than guessed.  True
rates are those of the whole operator: Eq. 1 of ContTune, and Eq. 5 and 6 of DS2 where subtasks are alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.live.metric_values import COUNTERS, GAUGES, PLACE
from models.live.ring_buffers import RingBuffers
from models.live.source_rates import SourceCounts, choose_capacity, choose_taken

# A difference over more than this many windows would smear one rate over a gap in the data.
LONGEST_GAP_WINDOWS = 2
# Flink's web interface calls a task with a larger share backpressured ("low", then "high").
BACKPRESSURED_ABOVE = 0.1
_DIFFERENCES = (*COUNTERS, "pending")


@dataclass(frozen=True, slots=True)
class Roles:
    """What the vertices of rows are, (rows,) each.

    Attributes:
        is_source: whether nothing feeds it.
        is_chained: whether several operators are chained in it.
    """

    is_source: Bools
    is_chained: Bools

    def of(self, row: Ints) -> Roles:
        """Return those of some rows."""
        return Roles(self.is_source[row], self.is_chained[row])


@dataclass(frozen=True, slots=True)
class RowWindows:
    """Windows of rows; all arrays (G,), ordered by row and time; rates as in ``silver.observations``, NaN for null.

    Attributes:
        row: which row.
        start_s: epoch seconds.
        samples: polls in the window that were a measurement.
        parallelism: at the end of the window, 0 where it was not seen.
        target_is_lower_bound: the source does not show its backlog and was backpressured: more may have arrived than
            it took in, and the target data rate is no more than a lower bound of it.
        measures: processing_rate_per_s, output_rate_per_s, true_processing_rate_per_s, true_output_rate_per_s,
            target_data_rate_per_s, busy_share, busy_share_max, idle_share, backpressured_share, selectivity,
            pending_records, latency_ms.
    """

    row: Ints
    start_s: Ints
    samples: Ints
    parallelism: Ints
    target_is_lower_bound: Bools
    measures: dict[str, Floats]


def row_windows(
    samples: RingBuffers, parallelism: RingBuffers, window_s: Ints, roles: Roles, now_s: float
) -> RowWindows:
    """Return the windows that ended, of which every poll is kept.

    Args:
        samples: (rows) of :data:`models.live.metric_values.COLUMNS`.
        parallelism: (rows) its changes.
        window_s: (rows,) length of a window.
        roles: of (rows,)
        now_s: epoch seconds; windows that end later are left out.
    """
    order = samples.order()
    times_ms = samples.times_ms(order)
    start_s = times_ms // 1000 - (times_ms // 1000) % window_s[:, None]
    taken = (times_ms > 0) & (start_s + window_s[:, None] <= now_s)
    # The window of the oldest poll has lost polls when one was overwritten.
    taken &= (start_s != start_s[:, :1]) | ~samples.is_overwritten()[:, None]
    index = np.flatnonzero(taken)
    row, start_s = index // samples.kept, start_s.ravel()[index]
    begins = np.ones(len(index), bool)
    begins[1:] = (row[1:] != row[:-1]) | (start_s[1:] != start_s[:-1])
    first = np.flatnonzero(begins)
    row, start_s = row[first], start_s[first]
    sums = _Sums(samples, order, window_s, index, first)
    return RowWindows(
        row=row,
        start_s=start_s,
        samples=np.diff(np.append(first, len(index))),
        parallelism=_parallelism_at(parallelism, row, 1000 * (start_s + window_s[row])),
        target_is_lower_bound=sums.target_is_lower_bound(roles.is_source[row]),
        measures=sums.measures(roles.of(row), window_s[row]),
    )


def _parallelism_at(changes: RingBuffers, row: Ints, end_ms: Ints) -> Ints:
    """Return (G,) the parallelism of the last change before the end of each window, 0 without one."""
    if not len(row):
        return np.zeros(0, np.int64)
    order = changes.order()
    times_ms, values = changes.times_ms(order), changes.values(0, order)
    place = (times_ms[row] < end_ms[:, None]).sum(axis=1) - 1  # where nothing is yet, the time is 0: before any end
    return np.asarray(np.nan_to_num(values[row, np.maximum(place, 0)]) * (place >= 0), np.int64)


class _Sums:
    """Sums over the polls of each window: with several polls the differences telescope to last minus first.

    Args:
        samples, order, window_s: of :func:`row_windows`.
        index: places of the polls that lie in a window, in (rows, kept) made flat.
        first: places in ``index`` at which windows begin.
    """

    def __init__(self, samples: RingBuffers, order: Ints, window_s: Ints, index: Ints, first: Ints) -> None:
        self._samples, self._order, self._index, self._first = samples, order, index, first
        times_ms = samples.times_ms(order)
        elapsed_s = np.diff(times_ms, axis=1) / 1000.0
        usable = (times_ms[:, :-1] > 0) & (elapsed_s > 0) & (elapsed_s <= LONGEST_GAP_WINDOWS * window_s[:, None])
        with np.errstate(invalid="ignore"):
            for counter in COUNTERS:
                usable &= ~(np.diff(self._values(counter), axis=1) < 0)
        self._usable = usable
        self._elapsed_s = self._in_windows(np.where(usable, elapsed_s, np.nan))
        self._rates = {name: self._rate(name) for name in _DIFFERENCES}
        self._gauges = {name: self._mean(name) for name in GAUGES}
        self._pending = self._last("pending")
        self._shares = {
            "busy_share": self._share("busy_total_ms", "busy_gauge_ms"),
            "busy_share_max": self._share("busy_max_total_ms", "busy_gauge_max_ms"),
            "idle_share": self._share("idle_total_ms", "idle_gauge_ms"),
            "backpressured_share": self._share("backpressured_total_ms", "backpressured_gauge_ms"),
        }

    def target_is_lower_bound(self, is_source: Bools) -> Bools:
        """Return (G,) whether more may have arrived than was taken in."""
        with np.errstate(invalid="ignore"):
            backpressured = self._shares["backpressured_share"] > BACKPRESSURED_ABOVE
        return np.asarray(is_source & np.isnan(self._pending) & backpressured)

    def measures(self, roles: Roles, window_s: Ints) -> dict[str, Floats]:
        """Return the measures of :class:`RowWindows`."""
        is_source = roles.is_source
        taken, out = (
            _first_known(self._rates[f"{side}_total"], self._gauges[f"{side}_gauge_per_s"]) for side in ("in", "out")
        )
        busy, pending = self._shares["busy_share"], np.where(is_source, self._pending, np.nan)
        processed = np.where(is_source, self._taken_by_sources(taken, out, roles.is_chained), taken)
        of_source = choose_capacity(
            taken=processed,
            busy=busy,
            backpressured=self._shares["backpressured_share"],
            pending=pending,
            growth=self._rates["pending"],
            window_s=window_s,
        )
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            worked = (busy > 0) & (processed > 0)  # Eq. 1, 2 of DS2 are undefined without useful time
            true = np.where(is_source, of_source, np.where(worked, processed / busy, np.nan))
            # Rule 1 of Flink's autoscaler; a source that shows no backlog has what it takes in as target.
            target = np.where(np.isnan(pending), processed, np.maximum(processed + self._rates["pending"], 0.0))
            waited_ms = np.where(processed > 0, 1000.0 * pending / processed, np.nan)
            return {
                "processing_rate_per_s": processed,
                "output_rate_per_s": out,
                "true_processing_rate_per_s": true,
                "true_output_rate_per_s": np.where(processed > 0, true * (out / processed), np.nan),
                "target_data_rate_per_s": np.where(is_source, target, np.nan),
                **self._shares,
                "busy_share_max": np.fmax(self._shares["busy_share_max"], busy),
                "selectivity": np.where(processed > 0, out / processed, np.nan),
                "pending_records": pending,
                "latency_ms": np.where(pending == 0, 0.0, waited_ms),
            }

    def _taken_by_sources(self, task_in: Floats, task_out: Floats, is_chained: Bools) -> Floats:
        """Return (G,) what a source takes in, whatever counts it."""
        with np.errstate(invalid="ignore"):
            has_counted = self._last("in_total") > 0
        counts = SourceCounts(
            task_in,
            task_out,
            self._rates["source_in_total"],
            self._rates["source_out_total"],
            has_counted,
            is_chained,
            self._shares["busy_share"],
        )
        return choose_taken(counts)

    def _values(self, column: str) -> Floats:
        return self._samples.values(PLACE[column], self._order)

    def _in_windows(self, differences: Floats) -> Floats:
        """Return the differences that end at the polls of windows, NaN for the first poll of a row."""
        return np.pad(differences, ((0, 0), (1, 0)), constant_values=np.nan).ravel()[self._index]

    def _sum(self, values: Floats) -> tuple[Floats, Ints]:
        """Return (G,) the sum over what is known in each window, and how many that is."""
        if not len(self._first):
            return np.zeros(0), np.zeros(0, np.int64)
        known = np.isfinite(values)
        return (
            np.add.reduceat(np.where(known, values, 0.0), self._first),
            np.add.reduceat(known.astype(np.int64), self._first),
        )

    def _rate(self, column: str) -> Floats:
        """Return (G,) the growth of a column per second."""
        difference = self._in_windows(np.where(self._usable, np.diff(self._values(column), axis=1), np.nan))
        total, _ = self._sum(difference)
        duration, number = self._sum(np.where(np.isfinite(difference), self._elapsed_s, np.nan))
        return _quotient(total, duration, number > 0)

    def _mean(self, column: str) -> Floats:
        total, number = self._sum(self._values(column).ravel()[self._index])
        return _quotient(total, number, number > 0)

    def _last(self, column: str) -> Floats:
        """Return (G,) the last known value in each window."""
        values = self._values(column).ravel()[self._index]
        if not len(self._first):
            return np.zeros(0)
        place = np.maximum.reduceat(np.where(np.isfinite(values), np.arange(len(values)), -1), self._first)
        return np.where(place >= 0, values[place], np.nan)

    def _share(self, total: str, gauge: str) -> Floats:
        """Return (G,) a share of time; Flink counts in steps of its measurement, so that it may exceed one a little."""
        return np.minimum(_first_known(self._rates[total], self._gauges[gauge]) / 1000.0, 1.0)


def _quotient(total: Floats, parts: Floats | Ints, defined: Bools) -> Floats:
    return np.asarray(np.divide(total, parts, out=np.full(len(total), np.nan), where=defined))


def _first_known(values: Floats, otherwise: Floats) -> Floats:
    return np.where(np.isnan(values), otherwise, values)
