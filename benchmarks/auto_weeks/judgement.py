"""What has to hold over a run: by what the double saw, and by the table and the files that the controller wrote."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from benchmarks.auto_weeks.job_double import COOLDOWN_S, DELAYS, STABILISES_S, STEP_S, Second
from benchmarks.auto_weeks.server import Asked, Happened, Run
from benchmarks.chaos.invariants import Record, match_rows
from benchmarks.chaos.log_rows import LogRow
from benchmarks.chaos.proxy import Put
from include.settings import Settings
from include.utc import HOUR_S

_UTILISATION = 0.8  # a job that needs more than this of what runs may want more slots
_POLL_NAME = re.compile(r"poll-(\d{8}T\d{12})\.jsonl\.gz")
_AFFECTS_S = 120.0  # within which an event makes a job stop
_CUT_S = 1.0  # a poll takes half a second
_LEFT_S = HOUR_S  # a job that cannot carry its load is left alone no longer, unless somebody else has changed it

Wrong = tuple[float, str]
"""Since when something was stranded or lost, epoch seconds, and what."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an event came to.

    Attributes:
        happened: the event.
        settled_s: until the job ran as it was asked.
        request_s: until the next request of the controller; None: there was none.
        late_s: for so long records were late until the next event.
        wrong: what was stranded or lost until then.
    """

    happened: Happened
    settled_s: float
    request_s: float | None
    late_s: float
    wrong: Sequence[str]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a run came to: outcomes of events, what was stranded or lost, and figures."""

    outcomes: Sequence[Outcome]
    stranded: Sequence[Wrong]
    lost: Sequence[Wrong]
    figures: Sequence[tuple[str, str]]


def find_spans(seconds: Sequence[Second], holds: Callable[[Second], bool]) -> list[tuple[float, float]]:
    """Return from when until when something held without a break, epoch seconds."""
    result: list[tuple[float, float]] = []
    for one in seconds:
        if holds(one):
            if result and result[-1][1] == one.at_s - STEP_S:
                result[-1] = result[-1][0], one.at_s
            else:
                result.append((one.at_s - STEP_S, one.at_s))
    return result


def documented_wait_s(settings: Settings, cluster: str, interval_s: float) -> float:
    """Return how long a request may take that is not wanted any more: slots, what Flink waits for, two evaluations."""
    flink_s = DELAYS * interval_s + COOLDOWN_S + STABILISES_S
    ticks_s = 2 * settings.planner.timing.apply_every_s + settings.apply.tick_s
    return settings.cluster(cluster).slots_wait_s + flink_s + settings.apply.confirm_timeout_s + ticks_s


class Judge:
    """Judges a run that has ended.

    Args:
        run: the run.
        rows: of ``ops.control_log``, in the order of their commits.
        settings: of the controller.
        cluster: its name.
        raw: folder of the raw files.
    """

    def __init__(self, run: Run, rows: Sequence[LogRow], settings: Settings, cluster: str, raw: Path) -> None:
        self._run, self._rows, self._settings, self._cluster, self._raw = run, rows, settings, cluster, raw
        self._sent = [one for one in run.asked if one.by == "controller"]
        self._hold_s = HOUR_S * settings.apply.foreign_change_hold_h
        self._poll_s = settings.cluster(cluster).poll_every_s
        puts = [Put(one.job_id, one.bounds, one.real_s) for one in self._sent]
        self._matched = match_rows(Record(puts, rows, {}, [], []))

    def judge(self) -> Judgement:
        """Return what the run came to."""
        suspended = [(row.decided_at_s, "in dry-run by itself") for row in self._rows if row.is_dry_run][:1]
        stranded = [*self._find_out_of_bounds(), *self._find_waits(), *self._find_left_alone(), *suspended]
        lost = [*self._find_unknown(), *self._find_missing(), *self._find_undone(), *self._find_missing_polls()]
        return Judgement(list(self._list_outcomes([*stranded, *lost])), stranded, lost, list(self._list_figures()))

    # stranded

    def _find_out_of_bounds(self) -> Iterator[Wrong]:
        for one in self._sent:
            if not all(1 <= count <= self._run.slots_max for count in one.bounds.values()):
                yield one.at_s, f"asks for {sorted(one.bounds.values())}"

    def _find_waits(self) -> Iterator[Wrong]:
        """Yield where the job did not run as asked for longer than documented, though nothing kept it and no load."""
        allowed_s = documented_wait_s(self._settings, self._cluster, self._run.job.spec.checkpoint_interval_s)

        def waits(one: Second) -> bool:
            is_wanted = one.asked > one.running and one.needed > _UTILISATION * one.running
            return one.running != one.asked and not is_wanted and not self._is_excused(one.at_s)

        for since_s, until_s in find_spans(self._run.job.seconds, waits):
            if until_s - since_s > allowed_s:
                yield since_s, f"does not run as asked for {until_s - since_s:.0f} s, {allowed_s:.0f} s allowed"

    def _find_left_alone(self) -> Iterator[Wrong]:
        """Yield where the job could not carry its load for long and nobody asked for more."""

        def is_short(one: Second) -> bool:
            is_helped = one.asked > one.running or one.asked >= self._run.slots_max
            return 0 < one.running < one.needed and not is_helped and not self._is_excused(one.at_s)

        for since_s, until_s in find_spans(self._run.job.seconds, is_short):
            if until_s - since_s > _LEFT_S:
                yield since_s, f"too small for its load for {until_s - since_s:.0f} s"

    def _is_excused(self, at_s: float) -> bool:
        """Whether the world, or a person's change, keeps the controller from bringing the job anywhere."""
        run = self._run
        lasts = any(one.at_s <= at_s <= one.until_s for one in run.happened)
        is_alone = not any(one.began_s <= at_s <= (one.ended_s or run.end_s) for one in run.lives)
        return lasts or is_alone or self._is_held(at_s)

    def _is_held(self, at_s: float) -> bool:
        margin_s = 2 * self._settings.planner.timing.apply_every_s + self._lease_s
        return any(one_s <= at_s <= one_s + self._hold_s + margin_s for one_s in self._run.changed_s)

    @property
    def _lease_s(self) -> float:
        return 3.0 * self._settings.apply.tick_s

    # lost

    def _find_unknown(self) -> Iterator[Wrong]:
        """Yield requests that the table does not have, and what is in force and the table does not know."""
        for one, row in zip(self._sent, self._matched, strict=True):
            if row is None:
                yield one.at_s, f"a request that is not in the table: {sorted(one.bounds.values())}"
        last, job = max(self._rows, key=lambda row: row.place), self._run.job
        asked, history = dict(zip(job.vertices, job.asked, strict=True)), last.history
        if last.job_id == job.job_id and history["in_flight"] is None and history["known_requested"] != asked:
            yield self._run.end_s, f"the job is asked for {asked}, by the table for {history['known_requested']}"

    def _find_missing(self) -> Iterator[Wrong]:
        """Yield rows of requests that did not come to Flink, unless the table or a kill says why."""
        matched = {row.place for row in self._matched if row is not None}
        places = {row.place: row for row in self._rows}
        for row in (row for row in self._rows if row.sends and row.place not in matched):
            follows = places.get((row.lease_number, row.entry + 1))
            is_withdrawn = follows is not None and follows.answer.startswith("withdrawn")
            is_killed = any(one.killed and one.ended_s == row.decided_at_s for one in self._run.lives)
            if not is_withdrawn and not is_killed:
                yield row.decided_at_s, f"the table has a request that never came: {row.reason}"

    def _find_undone(self) -> Iterator[Wrong]:
        """Yield requests for a job that a person had changed so lately that it is to be left alone."""
        for change in (one for one in self._run.asked if one.by == "person"):
            for one in self._sent:
                if one.job_id == change.job_id and change.at_s < one.at_s < change.at_s + self._hold_s:
                    yield one.at_s, f"a person's change of {show(change.at_s)} is not left alone"

    def _find_missing_polls(self) -> Iterator[Wrong]:
        """Yield polls that did not take place, or of which no file is there though the controller was not killed."""
        matches = map(_POLL_NAME.fullmatch, (path.name for path in self._raw.rglob("poll-*")))
        times = [datetime.strptime(one[1], "%Y%m%dT%H%M%S%f").replace(tzinfo=UTC) for one in matches if one]
        written_s = sorted(one.timestamp() for one in times)
        for life in (one for one in self._run.lives if one.began_s < self._run.end_s):
            ended_s = self._run.end_s if life.ended_s is None else life.ended_s
            polls_s = [at_s for at_s in self._run.polls_s if life.began_s <= at_s <= ended_s]
            lasted_s = ended_s - life.began_s
            # One that the kill came with may not have begun, or has no file.
            is_cut = bool(life.killed) and lasted_s % self._poll_s < _CUT_S
            expected = 1 + int(lasted_s // self._poll_s)
            if len(polls_s) not in {expected, expected - is_cut}:
                yield life.began_s, f"{len(polls_s)} polls of {expected} by {show(ended_s)}"
            for at_s in polls_s:
                place = bisect_left(written_s, at_s)
                is_written = written_s[place : place + 1] <= [at_s + self._poll_s] and place < len(written_s)
                if not is_written and not (is_cut and ended_s - at_s < _CUT_S):
                    yield at_s, "the file of a poll is missing"

    # figures

    def _list_outcomes(self, wrong: Sequence[Wrong]) -> Iterator[Outcome]:
        seconds, run = self._run.job.seconds, self._run
        waits = find_spans(seconds, lambda one: one.running != one.asked)
        for place, one in enumerate(run.happened):
            until_s = run.happened[place + 1].at_s if place + 1 < len(run.happened) else run.end_s
            settled = [end_s for since_s, end_s in waits if one.at_s - STEP_S <= since_s <= one.at_s + _AFFECTS_S]
            settled_s = max([one.at_s, *settled]) - one.at_s
            request_s = next((sent.at_s - one.at_s for sent in self._sent if sent.at_s > one.at_s), None)
            late_s = STEP_S * sum(step.is_late for step in seconds if one.at_s < step.at_s <= until_s)
            yield Outcome(
                one, settled_s, request_s, late_s, [what for at_s, what in wrong if one.at_s <= at_s < until_s]
            )

    def _list_figures(self) -> Iterator[tuple[str, str]]:
        run, seconds = self._run, self._run.job.seconds
        delays_s = [delay for delay in map(self._find_delay, find_spans(seconds, _is_above)) if delay is not None]
        accepted = sum(one.in_force_s is not None for one in self._sent)
        troubles = sum(bool(one.trouble) for one in self._sent)
        yield "days", f"{(run.end_s - run.job.start_s) / 86400:.2f}"
        yield "polls", f"{len(run.polls_s):,}"
        yield "processes of the controller", str(len(run.lives))
        yield "requests, in force, with trouble", f"{len(self._sent)}, {accepted}, {troubles}"
        yield "load above capacity, times that it lasted a minute", str(len(delays_s))
        if delays_s:
            yield "from there to a request, median and most, s", f"{median(delays_s):.0f}, {max(delays_s):.0f}"
        yield "late, min", f"{STEP_S * sum(one.is_late for one in seconds) / 60:.0f}"
        yield "slot-hours, paid", f"{STEP_S * sum(max(one.there, one.running) for one in seconds) / HOUR_S:.0f}"
        yield "slot-hours, needed", f"{STEP_S * sum(one.needed for one in seconds) / HOUR_S:.0f}"

    def _find_delay(self, span: tuple[float, float]) -> float | None:
        """Return how long after the load passed the capacity somebody asked for more; None: not for long, or held."""
        since_s, until_s = span
        if until_s - since_s < 60.0 or self._is_excused(since_s):
            return None
        first = next(one for one in self._run.job.seconds if one.at_s > since_s)
        later = (one.in_force_s or one.at_s for one in self._sent if _exceeds(one, first.running))
        return 0.0 if first.asked > first.running else next((at_s - since_s for at_s in later if at_s >= since_s), None)


def _is_above(one: Second) -> bool:
    return 0 < one.running < one.needed


def _exceeds(one: Asked, slots: int) -> bool:
    return max(one.bounds.values()) > slots


def show(at_s: float) -> str:
    """Return a time for a person."""
    return f"{datetime.fromtimestamp(at_s, UTC):%d %H:%M:%S}"
