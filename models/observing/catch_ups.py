"""What followed a stop: when the sources of a job had caught up, and the load before and after it.

A catch-up that came while a running job was not measured has no known time and is left out.  It ended at most
``unseen_s`` before the sample that shows it; what all sources took in since the job ran, and what was pending at that
poll and before the stop, tells more (``models/recovery/labels.py``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from models.arrays import Bools, Floats, Ints

# Replies about metrics may be a second old: right after a restart they still show the tasks that are gone.
_STALE_METRICS_S = 2.0
_LOAD_WINDOWS = 2
"""Windows before the stop over which the load is averaged."""
# Windows after a job runs again over which the load is averaged; the first difference of its counters needs a second.
LOAD_AFTER_WINDOWS = 2
# The replies about the sources of a job, at one poll of it, come within so long.
_ROUND_S = 5.0


@dataclass(frozen=True, slots=True)
class EffectWindow:
    """The time in which the effects of a stop are looked for; epoch milliseconds.

    Attributes:
        started_ms, running_ms: when the job stopped, and ran again; None where it failed again before.
        until_ms: samples from then on are not looked at: it stopped again, say.
        window_s: length of the windows of its cluster.
        longest_gap_s: a catch-up between two samples that are further apart has no known time.
    """

    started_ms: int
    running_ms: int | None
    until_ms: int
    window_s: int
    longest_gap_s: float


@dataclass(frozen=True, slots=True)
class SourcePolls:
    """What polls around a stop show of one source, (n,) each, in order of time; NaN where something is not known.

    Attributes:
        at_ms: times of the polls, epoch milliseconds.
        since_last_s: since the poll before.
        age_s: of its oldest record that is not through the job.
        target_per_s: records that arrive.
        taken_total: records that were taken in since the job runs.
        pending: records that wait.
    """

    at_ms: Ints
    since_last_s: Floats
    age_s: Floats
    target_per_s: Floats
    taken_total: Floats
    pending: Floats


@dataclass(frozen=True, slots=True)
class StopEffects:
    """What followed a stop; NaN where it is not known of every source.

    Attributes:
        caught_up_ms: when the last source had caught up, epoch milliseconds.
        unseen_s: it had at most so long before.
        emitted_records, pending_records: taken in by all sources from RUNNING until then, and pending then.
        pending_before_records: of all sources at the last poll before the stop.
        load_per_s: of the sources that show theirs, before the stop.
        load_after_per_s: the same in the windows after it.
        source_load_per_s: source -> the mean of both; empty where that of one is not known.
    """

    caught_up_ms: int | None = None
    unseen_s: float = math.nan
    emitted_records: float = math.nan
    pending_records: float = math.nan
    pending_before_records: float = math.nan
    load_per_s: float = math.nan
    load_after_per_s: float = math.nan
    source_load_per_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _SourceTotals:
    """What one source shows; totals: (k,) of the polls that tell of the run after the stop."""

    before_per_s: float
    after_per_s: float
    pending_before: float
    caught_up_ms: int | None
    unseen_s: float
    totals_ms: Ints
    taken: Floats
    pending: Floats

    @property
    def around_per_s(self) -> float:
        before, after = self.before_per_s, self.after_per_s
        return ((after if math.isnan(before) else before) + (before if math.isnan(after) else after)) / 2.0


def find_effects(span: EffectWindow, sources: Mapping[str, SourcePolls], caught_up_lag_s: float) -> StopEffects:
    """Return what followed a stop, by the sources that show their backlog.

    A source has caught up when its oldest record that is not through the job is younger than ``caught_up_lag_s``.
    """
    read = {name: _read_source(span, polls, caught_up_lag_s) for name, polls in sorted(sources.items())}
    each = {name: one for name, one in read.items() if one is not None}
    if not each:
        return StopEffects()
    known = [one.before_per_s for one in each.values() if not math.isnan(one.before_per_s)]
    around = {name: one.around_per_s for name, one in each.items()}
    caught_up_ms, unseen_s, emitted, pending = _find_catch_up(list(each.values()))
    return StopEffects(
        caught_up_ms=caught_up_ms,
        unseen_s=unseen_s,
        emitted_records=emitted,
        pending_records=pending,
        pending_before_records=sum(one.pending_before for one in each.values()),
        load_per_s=sum(known) if known else math.nan,
        load_after_per_s=sum(one.after_per_s for one in each.values()),
        source_load_per_s={} if any(map(math.isnan, around.values())) else around,
    )


def _read_source(span: EffectWindow, polls: SourcePolls, caught_up_lag_s: float) -> _SourceTotals | None:
    """Return what a source shows; None without a poll near the stop."""
    near = (polls.at_ms < span.until_ms) & (polls.at_ms >= span.started_ms - 1000 * span.window_s * _LOAD_WINDOWS)
    if not near.any():
        return None
    at_ms, since_last_s, target = polls.at_ms[near], polls.since_last_s[near], polls.target_per_s[near]
    taken, pending = polls.taken_total[near], polls.pending[near]
    running_ms = math.nan if span.running_ms is None else float(span.running_ms)
    running_for_s: Floats = np.asarray((at_ms - running_ms) / 1000.0, np.float64)
    with np.errstate(invalid="ignore"):
        is_after = (running_for_s > since_last_s) & (running_for_s <= span.window_s * LOAD_AFTER_WINDOWS)
    is_before = at_ms <= span.started_ms
    is_of_run = (running_for_s > _STALE_METRICS_S) & ~_shows_former_run(taken, is_before, np.asarray(running_for_s > 0))
    caught_up = np.flatnonzero(is_of_run & (polls.age_s[near] < caught_up_lag_s))
    caught_up_ms, unseen_s = None, math.nan
    if len(caught_up):
        first = caught_up[0]
        unseen_s = float(np.fmin(since_last_s[first], running_for_s[first]))
        caught_up_ms = int(at_ms[first]) if unseen_s <= span.longest_gap_s else None
    return _SourceTotals(
        before_per_s=_mean(target[is_before]),
        after_per_s=_mean(target[is_after]),
        pending_before=float(pending[is_before][-1]) if is_before.any() else math.nan,
        caught_up_ms=caught_up_ms,
        unseen_s=unseen_s,
        totals_ms=at_ms[is_of_run],
        taken=taken[is_of_run],
        pending=pending[is_of_run],
    )


def _shows_former_run(taken: Floats, is_before: Bools, is_since: Bools) -> Bools:
    """Return (n,) which polls show what the former run had taken in: a counter that has not fallen since, however old.

    A JobManager fetches metrics every ten seconds by default, and shows the last that it has.
    """
    known = taken[is_before & ~np.isnan(taken)]
    if not len(known):
        return np.zeros(len(taken), bool)
    has_fallen = np.logical_or.accumulate(is_since & (taken < known[-1]))
    return np.asarray(is_since & (taken >= known[-1]) & ~has_fallen)


def _find_catch_up(sources: list[_SourceTotals]) -> tuple[int | None, float, float, float]:
    """Return when the last source had caught up, ``unseen_s``, and the records taken in and pending of all then."""
    times_ms = [one.caught_up_ms for one in sources if one.caught_up_ms is not None]
    if len(times_ms) < len(sources):
        return None, math.nan, math.nan, math.nan
    caught_up_ms = max(times_ms)
    emitted = pending = 0.0
    for one in sources:
        away_s = np.abs(one.totals_ms - caught_up_ms) / 1000.0
        nearest = int(np.lexsort((one.taken, away_s))[0])
        is_same_poll = away_s[nearest] <= _ROUND_S
        emitted += float(one.taken[nearest]) if is_same_poll else math.nan
        pending += float(one.pending[nearest]) if is_same_poll else math.nan
    return caught_up_ms, max(one.unseen_s for one in sources), emitted, pending


def _mean(rates: Floats) -> float:
    """Return the mean of what is known, added up in order of time; NaN of nothing."""
    known = rates[~np.isnan(rates)]
    return float(np.cumsum(known)[-1]) / len(known) if len(known) else math.nan
