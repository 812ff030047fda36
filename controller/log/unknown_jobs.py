"""Jobs of which nobody knows what was done to them since their last row: they are taken over as they are, and wait."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from controller.log.control_log import LogEntry
from controller.log.last_entries import KnownJobs, LastEntry
from include.control.restores import Restore
from include.utc import DAY_S
from models.control.case import Action, Case, Verb
from models.control.limits import Limits
from models.control.reasons import Reason
from models.control.state import JobHistory, ObservedJob

_LONG_S = 3650.0 * DAY_S  # a hold is cut to what the limits say


def leave_alone(job: str, last: LogEntry | None, now_s: float, because: str) -> LogEntry:
    """Return the entry of a job of which rows are missing.

    Its request without an end may have ended, its bounds may be a forgotten request's or a person's: neither is
    followed, taken back, or called somebody else's change. Counts of requests, blocks and used answers stay.
    """
    history, case = JobHistory(), Case(now_s, None, ObservedJob(None, "", {}, None), JobHistory(), Limits())
    if last is not None:
        history, case = last.history, last.case
    unknown = replace(
        history,
        job_id=None,  # so that its state is taken over as it is
        in_flight=None,
        to_judge=None,
        unfilled=None,
        late_requests=(),
        held_until_s=now_s + _LONG_S,
        held_because=because,
    )
    return LogEntry(job, case, Action(Verb.REFUSE, Reason.HELD, because), unknown)


def leave_restored(known: KnownJobs, cluster: str, restore: Restore, now_s: float) -> KnownJobs:
    """Return those jobs whose last row is one of the backup, with what is known of them now.

    A row that cannot be read stays: its job is refused where its history is asked for.
    """
    number, result = restore.leases.get(cluster), KnownJobs()
    for job, one in known.items():
        is_of_backup = one.at_s <= restore.at_s if number is None else one.lease_number < number
        if not is_of_backup:
            continue
        try:
            entry = leave_alone(job, one.last, now_s, describe_restore(restore))
        except ValueError:
            continue
        result[job] = LastEntry(entry=entry, number=one.number)
    return result


def history_without_rows(restore: Restore | None) -> JobHistory:
    """Return the history of a job without rows: for a day after a restore it may be one that has lost them."""
    if restore is None:
        return JobHistory()
    return JobHistory(held_until_s=restore.at_s + DAY_S, held_because=describe_restore(restore))


def describe_restore(restore: Restore) -> str:
    """Return why a job is left alone, for a person."""
    at = f"{datetime.fromtimestamp(restore.backup_at_s, UTC):%Y-%m-%d %H:%M}Z"
    return f"the lake was restored from a backup of {at}: nobody knows what was done to the job since"
