"""Outstanding records of a job, and their age: what has arrived and is not through, at its sources and in its buffers.

O = pending + what was sent and not taken since the attempt began, in records of the sources, and
age = t - A^-1(A(t) - O(t)) for arrivals A: when the oldest record that is outstanding arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.observing.event_time import find_watermarks_s, measure_event_time
from models.observing.standing import find_standing
from models.topology.exchanges import Feeders, group_edges


@dataclass(frozen=True, slots=True)
class JobCounts:
    """What P polls count of a job of O operators, in topological order; NaN for what is not known.

    Attributes:
        at_s: (P,) epoch seconds, ascending.
        taken, sent: (P, O) records since the attempt began; a source takes from outside.
        pending: (P, O) records that wait at a source; NaN for other operators.
        is_full: (P, O) whether a subtask had no idle time since the poll before. Before an operator with idle time
            nothing waits: what is sent beyond what it takes leaves the job by a chained sink. None: each may be.
        has_idle_time: (P, O) whether since the poll before all subtasks had some and none was backpressured: what is
            pending at such a source for long stands. None: none had.
        watermark_ms: (P, O) of the operators' inputs. None: not known.
    """

    at_s: Floats
    taken: Floats
    sent: Floats
    pending: Floats
    is_full: Bools | None = None
    has_idle_time: Bools | None = None
    watermark_ms: Floats | None = None


@dataclass(frozen=True, slots=True)
class OutstandingRecords:
    """What is outstanding of each source, (P, O) or of any one shape; NaN for others and where it is not known.

    Attributes:
        records: that have arrived at the source, and are not through the job; without what stands there.
        age_s: of the oldest of them; where it is not known what is in the buffers, of the oldest that is pending: it is
            at least so old.
        arriving_per_s: records/s that arrive, where a source without backlog does not keep up and event time tells it.
    """

    records: Floats
    age_s: Floats
    arriving_per_s: Floats

    @classmethod
    def unknown(cls, *shape: int) -> OutstandingRecords:
        """Return what is known of nothing."""
        return cls(*np.full((3, *shape), np.nan))

    def change(self, change: Callable[[Floats], Floats]) -> OutstandingRecords:
        """Return each array changed alike."""
        return OutstandingRecords(change(self.records), change(self.age_s), change(self.arriving_per_s))


def measure_outstanding(counts: JobCounts, feeders: Feeders, passed_s: Floats | None = None) -> OutstandingRecords:
    """Return what is outstanding at each poll.

    An age beyond the polls goes on at their mean rate of arrivals; where nothing arrived, it is as old as they are.
    ``passed_s``, (P,), is when the last aligned checkpoint began that was complete at the poll, NaN without one: its
    barriers have pushed all that was taken in before through the job.
    """
    buffered, result = _count_buffered(counts, feeders), OutstandingRecords.unknown(*counts.taken.shape)
    records, age_s = result.records, result.age_s
    watermark_s = np.full(len(counts.at_s), np.nan)
    if counts.watermark_ms is not None:
        watermark_s = find_watermarks_s(counts.at_s, counts.watermark_ms, feeders)
    # A record is taken in after it happened, so that a watermark has pushed through what was taken in before it.
    passed_s = watermark_s if passed_s is None else np.fmax(passed_s, watermark_s)
    sources = [at for at, others in enumerate(feeders) if not others]
    for source in sources:
        taken, pending = counts.taken[:, source], counts.pending[:, source]
        if counts.has_idle_time is not None:
            more = np.diff(taken, prepend=np.nan)
            pending = pending - find_standing(pending, more, counts.has_idle_time[:, source])
            if len(sources) == 1 and np.isnan(pending).all():
                is_quiet = np.asarray(counts.has_idle_time.all(axis=1))
                through = taken - buffered[:, source]
                age_s[:, source], arriving = measure_event_time(counts.at_s, watermark_s, through, is_quiet)
                records[:, source] = age_s[:, source] * arriving
                result.arriving_per_s[:, source] = np.where(counts.has_idle_time[:, source], np.nan, arriving)
                continue
        inside = buffered[:, source]
        since = _count_since(counts.at_s, taken, passed_s)
        inside = np.where(since < inside, since, inside)
        records[:, source] = pending + inside
        arrived = _count_arrivals(counts.at_s, taken, counts.pending[:, source])
        known = np.where(np.isnan(records[:, source]), pending, records[:, source])
        age_s[:, source] = _find_ages(counts.at_s, arrived, known)
    return result


def _count_buffered(counts: JobCounts, feeders: Feeders) -> Floats:
    """Return (P, O) records of each source in buffers, on the way on which most are; NaN where it is not known.

    Of what feeders send, the share is under way that their successors have not taken: Flink counts a record once for
    each edge that it goes over.
    """
    taken = counts.taken
    sources = [at for at, others in enumerate(feeders) if not others]
    through = np.zeros(taken.shape)  # records of all sources that were sent on their way to an operator
    held = np.zeros(taken.shape)  # of them, in buffers before it
    most = np.zeros(taken.shape)
    shares = _share_under_way(counts, feeders)
    upstream: list[set[int]] = []
    for at, others in enumerate(feeders):
        upstream.append({at} if not others else set().union(*(upstream[other] for other in others)))
        if not others:
            continue
        own = sorted(upstream[at])
        through[:, at] = taken[:, own].sum(axis=1)
        before = held[:, list(others)].max(axis=1)
        held[:, at] = before + (through[:, at] - before) * shares[:, at]
        for source in own:
            with np.errstate(invalid="ignore", divide="ignore"):
                of_source = np.where(through[:, at] > 0, taken[:, source] / through[:, at], 0.0)
            most[:, source] = np.maximum(most[:, source], held[:, at] * of_source)  # NaN stays
    most[:, [at for at in range(len(feeders)) if at not in sources]] = np.nan
    return np.where(_find_mixed_runs(counts)[:, None], np.nan, most)


def _share_under_way(counts: JobCounts, feeders: Feeders) -> Floats:
    """Return (P, O) the share of what was sent to an operator that it has not taken."""
    taken, sent = counts.taken, counts.sent
    shares = np.zeros(taken.shape)
    for senders, takers in group_edges(feeders):
        all_sent, all_taken = sent[:, senders].sum(axis=1), taken[:, takers].sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(all_sent > 0, 1.0 - all_taken / all_sent, 0.0 * all_sent * all_taken)
        if counts.is_full is not None:
            share = np.where(counts.is_full[:, takers].any(axis=1), share, 0.0 * share)
        shares[:, takers] = np.maximum(share, 0.0)[:, None]  # counters may be of two moments
    return shares


def _find_mixed_runs(counts: JobCounts) -> Bools:
    """Return (P,) whether some operators still show the counters of the run before: they fell less often so far."""
    total = np.nan_to_num(counts.taken) + np.nan_to_num(counts.sent)
    runs = np.cumsum(np.diff(total, axis=0, prepend=total[:1]) < 0, axis=0)
    newest = runs.max(axis=1, initial=0)
    return np.asarray(((runs < newest[:, None]) & (total > 0)).any(axis=1))


def _count_since(at_s: Floats, taken: Floats, passed_s: Floats) -> Floats:
    """Return (P,) records that were taken in after a time each; NaN where it is of another run, or before the polls."""
    known = np.flatnonzero(np.isfinite(taken))
    if not len(known):
        return np.full(len(at_s), np.nan)
    runs = np.cumsum(np.diff(taken[known], prepend=taken[known[0]]) < 0)
    following = np.minimum(np.searchsorted(at_s[known], passed_s), len(known) - 1)
    latest = np.maximum(np.searchsorted(known, np.arange(len(at_s)), side="right") - 1, 0)
    at_that_time = np.interp(passed_s, at_s[known], taken[known], left=np.nan)
    is_of_run = runs[np.maximum(following - 1, 0)] == runs[latest]
    return np.where(is_of_run, np.maximum(taken - at_that_time, 0.0), np.nan)


def _count_arrivals(at_s: Floats, taken: Floats, pending: Floats) -> Floats:
    """Return (P,) records that arrived since the first poll; over a restart, and a gap, at the mean rate."""
    elapsed_s = np.diff(at_s)
    with np.errstate(invalid="ignore"):
        more = np.where(np.diff(taken) < 0, np.nan, np.diff(taken + pending))
    known = np.isfinite(more)
    total_s = elapsed_s[known].sum()
    rate = more[known].sum() / total_s if total_s > 0 else np.nan
    grown = np.cumsum(np.where(known, more, rate * elapsed_s))
    # Backlog and counter may be read at two moments: what has arrived stays.
    return np.maximum.accumulate(np.concatenate((np.zeros(min(len(at_s), 1)), grown)))


def _find_ages(at_s: Floats, arrived: Floats, records: Floats) -> Floats:
    """Return (P,) how long ago the oldest of the outstanding records arrived, s."""
    if len(at_s) < 2:
        return np.where(records == 0, 0.0, np.nan)
    polls: Ints = np.arange(len(at_s))
    passed = arrived - records
    place = np.clip(np.searchsorted(arrived, passed, side="right") - 1, 0, polls)
    following = np.minimum(place + 1, polls)
    with np.errstate(invalid="ignore", divide="ignore"):
        step = arrived[following] - arrived[place]
        part = np.where(step > 0, (passed - arrived[place]) / step, 0.0)
        since_s = at_s[place] + np.clip(part, 0.0, 1.0) * (at_s[following] - at_s[place])
        rate = arrived[-1] / (at_s[-1] - at_s[0])
        earlier_s = np.where((passed < 0) & (rate > 0), -passed / rate, 0.0)
    return np.where(np.isfinite(records), at_s - since_s + earlier_s, np.nan)
