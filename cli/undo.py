"""``tidewise undo``: back to what ran before our last rescale of a job, at once, and on hold for two hours.

The controller sends it as any other request: it goes by mode, holds, blackouts and slots, and by no cooldown. What
somebody has changed since stays as it is.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from cli.arguments import CommandParser, UsageError, number
from cli.command import add_person, command
from cli.known_jobs import check_scope, read_known_jobs
from cli.permission import require_role
from cli.questions import cluster_and_job, open_reader
from fleet.acts.undo import HOURS, check_not_held, list_undo_warnings, order_undo, read_undoable
from fleet.fleet_reader import FleetReader
from fleet.plain import to_json
from fleet.shown import show_time
from fleet.undoable import NothingToUndoError, UndoableRescale
from include.settings import Settings
from include.short_names import visible
from models.control.log_lines import describe_change


def run(options: argparse.Namespace, now_s: float) -> int:
    """Show what would be taken back; with ``--yes`` order it.

    Raises:
        UsageError: there is nothing to take back, or something else holds the job.
    """
    settings, reader = open_reader(options)
    by = require_role(settings.roles, "rescale", options.by)
    what = _find(reader, settings, options.job, now_s)
    try:
        check_not_held(reader.read_holds(now_s), what.cluster, what.job)
    except NothingToUndoError as error:
        raise UsageError(str(error)) from error
    reason, until_s = " ".join(options.reason or ()), now_s + 3600 * options.hours
    change = describe_change(what.undone_shown, what.target_shown)
    warnings = list_undo_warnings(settings, what, now_s)
    if options.yes:
        order_undo(settings, what, by=by, reason=reason, now_s=now_s, until_s=until_s)
    if options.json:
        content = {"at_s": now_s, "is_ordered": bool(options.yes), "by": by, "until_s": until_s, "undo": what}
        print(to_json("undo", {**content, "warnings": warnings}))
        return int(bool(warnings) and bool(options.yes))
    sent = show_time(what.sent_at_s, now_s)
    does = "goes back" if options.yes else "would go back"
    print(visible(f"{options.job} {does}: {change} (step {what.step_id} of {sent})"))
    print(
        f"nothing else is sent to it until {datetime.fromtimestamp(until_s, UTC):%Y-%m-%d %H:%M}Z, or tidewise release"
    )
    for warning in warnings:
        print(visible(f"but: {warning}"))
    if not options.yes:
        print(visible(f"nothing was done; to do it: tidewise undo {options.job} --yes --reason ..."))
    else:
        print(visible(f"the controller sends it at its next tick; then: tidewise log {options.job} --hours 1"))
    return int(bool(warnings) and bool(options.yes))


def _find(reader: FleetReader, settings: Settings, job: str, now_s: float) -> UndoableRescale:
    cluster, _, name = job.partition("/")
    try:
        return read_undoable(reader, cluster, name, now_s)
    except NothingToUndoError as error:
        check_scope(job, settings, read_known_jobs(settings, now_s))
        raise UsageError(f"nothing to undo on {job}: {error}") from error


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("job", type=cluster_and_job, help="cluster/job")
    parser.add_argument("--yes", action="store_true", help="do it; without, it is only shown")
    parser.add_argument("--hours", type=number(0, 24 * 30, above=True), default=HOURS, help="on hold for so long (2)")
    parser.add_argument("--json", action="store_true", help="the same as JSON, with a schema that stays")
    add_person(parser)


main = command("undo", __doc__, _add_arguments, run, reads=True, failed="NOTHING WAS UNDONE: ")
