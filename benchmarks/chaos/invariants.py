"""What has to hold over a whole run, whatever was injected: checked on the proxy's record of PUTs and the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.chaos.jobs import PersonChange
from benchmarks.chaos.log_rows import LogRow
from benchmarks.chaos.proxy import Put
from benchmarks.chaos.run_settings import CONFIRM_S, HOLD_S
from benchmarks.chaos.world import Span, Wrong

_NOTICED_S = 200.0  # within which a controller, or the next after its lease, sees what a person has changed
_RACES_S = 1.0  # what left before a person's change may arrive just after it: Flink has no conditional request


@dataclass(frozen=True, slots=True)
class Record:
    """What a run left.

    Attributes:
        puts: in the order in which they came to the proxy.
        rows: of the log, in the order of their commits.
        names: job id -> job.
        changes: of persons.
        silences: in which nothing may be sent.
        wrongs: what faults have seen.
        confirm_s: how long a request has until it is given up.
    """

    puts: Sequence[Put]
    rows: Sequence[LogRow]
    names: Mapping[str, str]
    changes: Sequence[PersonChange]
    silences: Sequence[Span]
    wrongs: Sequence[Wrong] = ()
    confirm_s: float = CONFIRM_S


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must never happen, and when it did (epoch seconds)."""

    invariant: str
    at_s: float
    detail: str


def find_violations(record: Record) -> list[Violation]:
    """Return everything that must not have happened, in the order of time."""
    matched = match_rows(record)
    result = [
        *_find_unrecorded(record, matched),
        *_several_in_flight(record, matched),
        *_find_sent_in_silence(record),
        *_undone_changes(record, matched),
        *_several_writers(record, matched),
        *_find_wrong_blame(record),
        *_find_left_alone(record),
        *(Violation(one.invariant, one.at_s, one.detail) for one in record.wrongs),
    ]
    return sorted(result, key=lambda one: one.at_s)


def match_rows(record: Record) -> list[LogRow | None]:
    """Return the row behind each PUT: of the same job and bounds, committed before it came, and of no other PUT."""
    remaining = [row for row in record.rows if row.sends and row.request is not None]
    matched: list[LogRow | None] = []
    for put in record.puts:
        fitting = [row for row in remaining if _fits(row, put)]
        row = max(fitting, key=lambda one: one.committed_s) if fitting else None
        if row is not None:
            remaining.remove(row)
        matched.append(row)
    return matched


def _fits(row: LogRow, put: Put) -> bool:
    request = row.request or {}
    is_same = request["job_id"] == put.job_id and request["target"] == put.bounds
    return is_same and row.committed_s <= put.received_s


def _find_unrecorded(record: Record, matched: Iterable[LogRow | None]) -> Iterator[Violation]:
    for put, row in zip(record.puts, matched, strict=True):
        if row is None:
            yield Violation("every request is in the log before it leaves", put.received_s, _describe(record, put))


def _several_in_flight(record: Record, matched: Sequence[LogRow | None]) -> Iterator[Violation]:
    """Between two requests for a job the log ends the first: confirmed, withdrawn, given up or refused.

    A roll back ends the request that it takes back.  And no PUT comes while another of the job is on its way, unless
    that one was delayed beyond its deadline.
    """
    newest: dict[str, tuple[Put, LogRow | None]] = {}
    for put, row in zip(record.puts, matched, strict=True):
        before = newest.get(put.job_id)
        newest[put.job_id] = put, row
        if before is None:
            continue
        on_its_way = before[0].answered_s is None or before[0].answered_s > put.received_s
        if on_its_way and put.received_s - before[0].received_s < record.confirm_s:
            yield Violation("one request in flight per job", put.received_s, f"two PUTs: {_describe(record, put)}")
        elif before[1] is not None and row is not None and not _is_ended(record, before[1], row):
            yield Violation("one request in flight per job", put.received_s, f"not ended: {_describe(record, put)}")


def _is_ended(record: Record, first: LogRow, second: LogRow) -> bool:
    if second.verb == "roll_back":
        return True
    between = [row for row in record.rows if row.job == second.job and first.place < row.place < second.place]
    return any(row.history["in_flight"] is None for row in between)


def _find_sent_in_silence(record: Record) -> Iterator[Violation]:
    for put in record.puts:
        job = record.names.get(put.job_id)
        for span in record.silences:
            if span.job in {None, job} and span.since_s < put.received_s < span.until_s:
                yield Violation(f"nothing is sent while {span.why}", put.received_s, _describe(record, put))


def _undone_changes(record: Record, matched: Sequence[LogRow | None]) -> Iterator[Violation]:
    for change in record.changes:
        if not change.is_change:
            continue
        for put, row in zip(record.puts, matched, strict=True):
            is_after = change.at_s < put.received_s < change.at_s + HOLD_S
            is_race = row is not None and row.committed_s < change.at_s and put.received_s < change.at_s + _RACES_S
            if is_after and record.names.get(put.job_id) == change.job and not is_race:
                yield Violation("a person's change is not undone", put.received_s, _describe(record, put))


def _several_writers(record: Record, matched: Iterable[LogRow | None]) -> Iterator[Violation]:
    """The lease numbers of requests never go down: a controller that lost the lease sends nothing."""
    newest = 0
    for put, row in zip(record.puts, matched, strict=True):
        if row is None:
            continue
        if row.lease_number < newest:
            detail = f"term {row.lease_number} after {newest}: {_describe(record, put)}"
            yield Violation("one writer at a time", put.received_s, detail)
        newest = max(newest, row.lease_number)


def _find_wrong_blame(record: Record) -> Iterator[Violation]:
    """A job is left alone for somebody else's change only where somebody has changed it."""
    for row in record.rows:
        ages_s = [row.committed_s - one.at_s for one in record.changes if one.job == row.job]
        if row.reason == "foreign_change" and not any(0 <= age_s <= _NOTICED_S for age_s in ages_s):
            yield Violation("nobody is blamed for what Flink or the controller did", row.committed_s, row.detail)


def _find_left_alone(record: Record) -> Iterator[Violation]:
    """Of a job that is late by the polls, the log says since when: a person is told, unless it is helped in time."""
    for row in record.rows:
        if row.is_left_alone:
            detail = f"{row.job}: {row.reason}, records wait for {row.observed['late_s']:.0f} s"
            yield Violation("a late job is helped, or a person is told why not", row.committed_s, detail)


def _describe(record: Record, put: Put) -> str:
    return f"PUT for {record.names.get(put.job_id, put.job_id)}: {sorted(put.bounds.values())}"
