"""What is outstanding of each source at each poll: the polls of a job's operators put side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.observing.outstanding import JobCounts, OutstandingRecords, measure_outstanding
from models.observing.samples import Samples, Vertices
from models.observing.source_rates import SourceCounts, choose_taken
from models.observing.standing import have_idle_time
from models.topology.edges import NO_IDLE
from models.topology.exchanges import Feeders

_ROUND_US = 5_000_000
"""The replies about the operators of a job, at one poll of it, come within so long."""
LOOKBACK_WINDOWS = 4
"""So far the rows of an hour look back: at a poll a window, what stands is known by then."""


@dataclass(frozen=True)
class JobRows:
    """A job.

    Attributes:
        rows: of its operators, in topological order.
        feeders: of each of them.
        is_whole: whether these are all: else nothing tells what is in its buffers.
        checkpoints: time at which one was completed -> when its barriers set out, None where that is not known; epoch
            milliseconds.
    """

    rows: Sequence[int]
    feeders: Feeders
    checkpoints: Mapping[int, int | None] = field(default_factory=dict)
    is_whole: bool = True

    def find_passed_s(self, at_us: Ints) -> Floats | None:
        """Return (P,) when the last checkpoint set out that was completed at a time each; None without any."""
        done_ms, began_ms = self._completed
        if not len(done_ms):
            return None
        place = np.searchsorted(done_ms, at_us / 1000.0, side="right") - 1
        return np.where(place >= 0, began_ms[place] / 1000.0, np.nan)

    @cached_property
    def _completed(self) -> Floats:
        """(2, C) when checkpoints were completed and had set out, put in order once for all hours of a history."""
        known = sorted((done_ms, began_ms) for done_ms, began_ms in self.checkpoints.items() if began_ms is not None)
        return np.array(known, float).reshape(-1, 2).T


def find_outstanding(samples: Samples, vertices: Vertices, jobs: Iterable[JobRows]) -> OutstandingRecords:
    """Return what is outstanding at each poll of a source, (n,) as the samples, whose vertex is the row."""
    polls, (is_full, has_idle_time) = samples.polls, _find_busy_times(samples)
    result = OutstandingRecords.unknown(len(polls.vertex))
    first = np.searchsorted(polls.vertex, np.arange(len(vertices.window_s) + 1))
    in_total, pending, watermark_ms = (polls.value(name) for name in ("in_total", "pending", "watermark_ms"))
    counted = SourceCounts.read(polls.value, in_total > 0, vertices.is_chained[polls.vertex])
    taken = np.where(vertices.is_source[polls.vertex], choose_taken(counted), in_total)
    sent = counted.task_out
    for job in jobs:
        spans = [np.arange(first[row], first[row + 1]) for row in job.rows]
        of_sources = [span for span, others in zip(spans, job.feeders, strict=True) if not others]
        if all(np.isnan(values[span]).all() for values in (pending, watermark_ms) for span in spans):
            continue
        at_us = polls.at_us[of_sources[0]]
        place = np.stack([_find_nearest(polls.at_us, span, at_us) for span in spans], axis=1)
        is_near = (np.abs(polls.at_us[place] - at_us[:, None]) <= _ROUND_US) & [len(span) > 0 for span in spans]
        near_taken, near_sent, near_pending, near_watermark_ms = (
            np.where(is_near, values[place], np.nan) for values in (taken, sent, pending, watermark_ms)
        )
        counts = JobCounts(
            samples.times_s(of_sources[0]),
            near_taken,
            near_sent,
            near_pending,
            is_full=is_full[place],
            has_idle_time=is_near & has_idle_time[place],
            watermark_ms=near_watermark_ms if job.is_whole else None,
        )
        of_job = measure_outstanding(counts, job.feeders, job.find_passed_s(at_us))
        for number, others in enumerate(job.feeders):
            if not others:
                near = is_near[:, number]
                if job.is_whole:
                    result.records[place[near, number]] = of_job.records[near, number]
                result.age_s[place[near, number]] = of_job.age_s[near, number]
                result.arriving_per_s[place[near, number]] = of_job.arriving_per_s[near, number]
    return result


def _find_busy_times(samples: Samples) -> tuple[Bools, Bools]:
    """Return (n,) whether a subtask may have had no idle time since the sample before, and whether all are sure to.

    One that was backpressured may have had none, whatever the mean over the subtasks says; what is not known may be.
    """
    names = ("idle_total_ms", "busy_max_total_ms", "backpressured_total_ms")
    with np.errstate(invalid="ignore"):
        idle, busiest, held_up = (samples.difference(name) / (1000.0 * samples.elapsed_s) for name in names)
        may_be_full = ~(idle >= NO_IDLE) | (busiest > 1.0 - NO_IDLE)
        return may_be_full, have_idle_time(idle, busiest, held_up)


def _find_nearest(times_us: Ints, span: Ints, at_us: Ints) -> Ints:
    """Return (P,) which of a span of ascending times is nearest to each of P; the first of all where it is empty."""
    if not len(span):
        return np.zeros(len(at_us), np.int64)
    after = np.minimum(np.searchsorted(times_us[span], at_us), len(span) - 1)
    either = span[np.stack([np.maximum(after - 1, 0), after])]
    nearer = np.abs(times_us[either] - at_us).argmin(axis=0)
    return np.asarray(either[nearer, np.arange(len(at_us))])
