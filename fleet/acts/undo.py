"""Ordering that our last rescale of a job is taken back."""

from __future__ import annotations

from collections.abc import Collection

from fleet.facts import HoldFact
from fleet.fleet_reader import FleetReader
from fleet.holds import covers
from fleet.log_tables import newest_of_jobs, rows_of_job, select_sent
from fleet.undoable import NothingToUndoError, UndoableRescale, find_undoable
from include.control.controlled_lake import is_controlled
from include.control.interventions import Intervention, UserAction, record_intervention
from include.control.small_objects import StoreUnreadableError
from include.control.undo_orders import UndoOrder, UndoStore
from include.settings import Settings
from models.control.log_lines import describe_change

HOURS = 2.0
"""The job is on hold for so long afterwards."""


def read_undoable(reader: FleetReader, cluster: str, job: str, now_s: float) -> UndoableRescale:
    """Return what can be taken back of a job, from its rows of the log.

    Raises:
        NothingToUndoError: nothing can; the message says why.
    """
    light = rows_of_job(reader.log.read_light(now_s), cluster, job)
    last = reader.log.read_whole_of(newest_of_jobs(light), newest_of_jobs(select_sent(light)), is_part=True)
    return find_undoable(last.newest.get((cluster, job)), last.sent.get((cluster, job)))


def check_not_held(holds: Collection[HoldFact], cluster: str, job: str) -> None:
    """Refuse an undo of a job that something else holds: nothing would be sent.

    Raises:
        NothingToUndoError: it is held; the message has what ends that.
    """
    others = [one for one in holds if covers(one, cluster, job) and one.kind not in {"undo", "change"}]
    if others:
        one = others[0]
        by = f" by {one.by}" if one.by else ""
        raise NothingToUndoError(f"{one.scope} is on hold{by}, and nothing is sent; first: {one.release}")


def order_undo(
    settings: Settings, what: UndoableRescale, *, by: str, reason: str, now_s: float, until_s: float
) -> None:
    """Order it of the controller, and hold the job until then.

    Raises:
        StoreUnreadableError: it was not written.
    """
    scope = f"{what.cluster}/{what.job}"
    key = (what.cluster, what.job, what.job_id, what.step_id)
    UndoStore(settings.paths.lake).write(UndoOrder(*key, what.undone, what.target, by, reason, now_s, until_s))
    detail = f"back to {describe_change(what.undone_shown, what.target_shown)}"
    one = Intervention(now_s, UserAction.UNDO, scope, by, reason, detail, what.step_id, until_s)
    record_intervention(settings.paths.lake, one)


def list_undo_warnings(settings: Settings, what: UndoableRescale, now_s: float) -> list[str]:
    """Return why it may not be sent."""
    result = []
    mode = settings.mode_of(what.cluster, what.job)
    if mode in {"off", "dry-run"}:
        result.append(f"the job's mode is {mode}: it is recorded, and not sent")
    if settings.job_limits(what.cluster, what.job).pin is not None:
        result.append("the settings pin the job, and what is pinned stays")
    try:
        if not is_controlled(settings.paths.lake, what.cluster, now_s):
            result.append("no controller has worked on this cluster within an hour: start it (tidewise control)")
    except StoreUnreadableError as error:
        result.append(str(error))
    return result
