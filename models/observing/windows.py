"""Samples to windows: the observed and true rates of each vertex, the arithmetic of ``silver.observations``.

The true rates are those of the whole operator: Eq. 1 of ContTune, PA(p) = observed rate / useful share of time.

Deviation: Eq. 5 and 6 of DS2 sum the true rate of every instance; Flink's aggregated replies give the sum of the rates
and the mean busy share, so that the sum is taken before the division. Without skew the two are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.observing.samples import Polls, Samples, Vertices, find_window_starts
from models.observing.source_rates import SourceCounts, choose_capacity, choose_taken, stands_still
from models.observing.window_sums import WindowSums, last_of_parts

BACKPRESSURED_ABOVE = 0.1
"""Flink's web interface calls a task with a larger share backpressured ("low", then "high")."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of vertices; all arrays (G,), ordered by vertex and time; rates as in ``silver.observations``, NaN: null.

    Attributes:
        vertex: number of the vertex.
        start_s: epoch seconds.
        samples: polls in the window that were a measurement.
        last_us: when the last of them was, epoch microseconds.
        target_is_lower_bound: the source does not show its backlog and was backpressured: more may have arrived than
            it took in, and the target data rate is no more than a lower bound of it, unless event time tells.
        measures: processing_rate_per_s, output_rate_per_s, true_processing_rate_per_s, true_output_rate_per_s,
            target_data_rate_per_s, busy_share, busy_share_max, idle_share, backpressured_share, selectivity,
            pending_records, latency_ms: the time in which what is taken in works off what is pending.
    """

    vertex: Ints
    start_s: Ints
    samples: Ints
    last_us: Ints
    target_is_lower_bound: Bools
    measures: dict[str, Floats]

    def of(self, window: Ints | Bools) -> Windows:
        """Return some windows."""
        return Windows(
            self.vertex[window],
            self.start_s[window],
            self.samples[window],
            self.last_us[window],
            self.target_is_lower_bound[window],
            {name: values[window] for name, values in self.measures.items()},
        )


def build_windows(samples: Samples, vertices: Vertices, arriving_per_s: Floats) -> Windows:
    """Return the windows of n samples of (V,) vertices, with what arrives by event time, (n,) records/s."""
    polls = samples.polls
    start_s, first = _begin_windows(polls, vertices)
    sums = WindowSums(samples, first)
    own = vertices.of(polls.vertex[first])
    shares = {
        "busy_share": _share(sums, "busy_total_ms", "busy_gauge_ms"),
        "busy_share_max": _share(sums, "busy_max_total_ms", "busy_gauge_max_ms"),
        "idle_share": _share(sums, "idle_total_ms", "idle_gauge_ms"),
        "backpressured_share": _share(sums, "backpressured_total_ms", "backpressured_gauge_ms"),
    }
    pending, arriving = sums.last("pending"), sums.mean_of(arriving_per_s)
    held_up = _find_lower_bounds(own.is_source, pending, shares["backpressured_share"])
    counts = np.diff(np.append(first, len(start_s)))
    return Windows(
        vertex=polls.vertex[first],
        start_s=start_s[first],
        samples=counts,
        last_us=polls.at_us[first + counts - 1],
        target_is_lower_bound=held_up & np.isnan(arriving),
        measures=_measure(sums, own, shares, pending, arriving),
    )


def last_known(polls: Polls, vertices: Vertices, values: Floats) -> Floats:
    """Return (G,) the last known of (n,) values of polls in each window of :func:`build_windows`, NaN without one."""
    return last_of_parts(values, _begin_windows(polls, vertices)[1])


def _begin_windows(polls: Polls, vertices: Vertices) -> tuple[Ints, Ints]:
    """Return (n,) the start of each poll's window, epoch seconds, and (G,) the first polls of windows."""
    start_s = find_window_starts(polls, vertices.window_s)
    begins = np.ones(len(start_s), bool)
    begins[1:] = (polls.vertex[1:] != polls.vertex[:-1]) | (start_s[1:] != start_s[:-1])
    return start_s, np.flatnonzero(begins)


def find_superseded(windows: Windows, operator: Ints) -> Bools:
    """Return (G,) whether another vertex of the same operator has later samples in the same window.

    A window of a job submitted again has samples under two ids: the later stands, of two alike the first.  Operators
    have numbers, (G,).
    """
    order = np.lexsort((-windows.last_us, windows.start_s, operator))
    operator, start_s = operator[order], windows.start_s[order]
    result = np.zeros(len(order), bool)
    result[order[1:]] = (operator[1:] == operator[:-1]) & (start_s[1:] == start_s[:-1])
    return result


def _measure(
    sums: WindowSums, own: Vertices, shares: dict[str, Floats], pending: Floats, arriving: Floats
) -> dict[str, Floats]:
    """Return the measures of :class:`Windows`."""
    task_in, out = (
        _first_known(sums.rate(f"{side}_total"), sums.mean(f"{side}_gauge_per_s")) for side in ("in", "out")
    )
    busy, growth = shares["busy_share"], sums.rate("pending")
    counts = SourceCounts(
        task_in,
        out,
        sums.rate("source_in_total"),
        sums.rate("source_out_total"),
        stands_still(sums.largest("in_total"), busy),
        own.is_chained,
    )
    processed = np.where(own.is_source, choose_taken(counts), task_in)
    of_source = choose_capacity(
        taken=processed,
        busy=busy,
        backpressured=shares["backpressured_share"],
        pending=pending,
        growth=growth,
        window_s=own.window_s,
    )
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        worked = (busy > 0) & (processed > 0)  # Eq. 1, 2 of DS2 are undefined without useful time
        true = np.where(own.is_source, of_source, np.where(worked, processed / busy, np.nan))
        # Rule 1 of Flink's autoscaler; a source that shows no backlog has as target what arrives by event time, else
        # what it takes in.
        target = np.where(np.isnan(pending), _first_known(arriving, processed), np.maximum(processed + growth, 0.0))
        work_off_ms = np.where(processed > 0, 1000.0 * pending / processed, np.nan)
        return {
            "processing_rate_per_s": processed,
            "output_rate_per_s": out,
            "true_processing_rate_per_s": true,
            "true_output_rate_per_s": np.where(processed > 0, true * (out / processed), np.nan),
            "target_data_rate_per_s": np.where(own.is_source, target, np.nan),
            **shares,
            "busy_share_max": np.fmax(shares["busy_share_max"], busy),
            "selectivity": np.where(processed > 0, out / processed, np.nan),
            "pending_records": pending,
            "latency_ms": np.where(pending == 0, 0.0, work_off_ms),
        }


def _find_lower_bounds(is_source: Bools, pending: Floats, backpressured: Floats) -> Bools:
    """Return (G,) whether more may have arrived than was taken in."""
    with np.errstate(invalid="ignore"):
        return np.asarray(is_source & np.isnan(pending) & (backpressured > BACKPRESSURED_ABOVE))


def _share(sums: WindowSums, total: str, gauge: str) -> Floats:
    """Return (G,) a share of time; Flink counts in steps of its measurement, so that it may miss 0..1 a little."""
    return np.clip(_first_known(sums.rate(total, 1000.0), sums.mean(gauge) / 1000.0), 0.0, 1.0)


def _first_known(values: Floats, otherwise: Floats) -> Floats:
    return np.where(np.isnan(values), otherwise, values)
