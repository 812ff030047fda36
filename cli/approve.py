"""``make approve``: answer a step that waits for a person (mode ``approve``), list what waits, or lift a no."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from cli.arguments import EXIT_USAGE, CommandParser, UsageError, number
from cli.embedded import below
from cli.light_start import leave_pandas_out
from cli.permission import require_role
from cli.printing import print_lines
from fleet.acts.answers import NotWaitingError, find_waiting_step, give_answer
from fleet.acts.people import NotAllowedError
from include.control.approvals import NOBODY, Approval, ApprovalStore
from include.control.interventions import Act, Intervention, record_intervention
from include.control.small_objects import StoreUnreadableError
from include.orchestration.waiting_steps import read_waiting_steps
from include.place import place
from include.settings import Settings, SettingsError, load_settings
from include.spark.submission import anchor_paths


def run(options: argparse.Namespace, now_s: float) -> None:
    """Answer a step, list what waits, or lift a no.

    Raises:
        UsageError: there is no such no, or not one that this person may lift.
        NotWaitingError: no such step waits.
        NotAllowedError: this person may not answer.
        StoreUnreadableError: the answer was not written, so it does not count.
    """
    settings = anchor_paths(load_settings())
    store = ApprovalStore(settings.paths.lake)
    answers = store.read(now_s)
    denials = [one for one in answers if not one.is_approved]
    waiting = read_waiting_steps(settings, now_s, answers)
    if options.list:
        lines = [one.describe() for one in waiting] or ["no step waits for an answer"]
        print_lines([*lines, *(f"{_name(one)}: {one.by} has said no" for one in denials)])
        return
    by = require_role(settings.roles, "approve", options.by)
    if options.lift:
        _lift(store, _find_denials(denials, options.job, options.step_id), by, settings, now_s)
        return
    if options.job is None or options.step_id is None:
        raise UsageError("write cluster/job and the id of a step, or --list")
    step, reason = find_waiting_step(waiting, options.job, options.step_id), " ".join(options.reason or ())
    hours = give_answer(
        settings, step, is_approved=not options.deny, by=by, reason=reason, now_s=now_s, hours=options.hours or 0.0
    )
    print_lines([f"{'denied' if options.deny else 'approved'} for {hours:g} h: {step.describe()}"])


def _lift(store: ApprovalStore, denials: Sequence[Approval], by: str, settings: Settings, now_s: float) -> None:
    """Take back what this person has said, or, as an admin, anybody; what nobody has said anybody may."""
    mine = [one for one in denials if one.by in {by, NOBODY} or by in settings.roles.admin]
    if not mine:
        named = ", ".join(sorted({one.by for one in denials}))
        raise UsageError(f"a no is lifted by who has said it, {named}, or by one of roles.admin; you are {by}")
    store.lift(mine)
    for one in mine:
        detail = f"the no of {one.by} is lifted"
        act = Intervention(now_s, Act.LIFT, f"{one.cluster}/{one.job}", by, "", detail, one.step_id)
        record_intervention(settings.paths.lake, act)
    print_lines(f"lifted: {_name(one)}: {one.by} has said no" for one in mine)


def _find_denials(denials: Sequence[Approval], job: str | None, step_id: str | None) -> list[Approval]:
    result = [one for one in denials if (f"{one.cluster}/{one.job}", one.step_id) == (job, step_id)]
    if not result:
        raise UsageError(
            f"nobody has said no to {job} {step_id}; there is: {'; '.join(map(_name, denials)) or 'nothing'}"
        )
    return result


def _name(one: Approval) -> str:
    return f"{one.cluster}/{one.job} {one.step_id}"


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(prog="make approve", description=__doc__)
    parser.add_argument("job", nargs="?", help='"cluster/job"')
    parser.add_argument("step_id", nargs="?", help="as --list shows it")
    parser.add_argument("--list", action="store_true", help="show what waits")
    parser.add_argument("--deny", action="store_true", help="say no")
    parser.add_argument("--lift", action="store_true", help="take back a no: your own, or as an admin anybody's")
    parser.add_argument("--reason", nargs="+", help="why, for others to read")
    parser.add_argument("--by", help="who; default: your login")
    parser.add_argument("--hours", type=number(0, 8760, above=True), help="the answer counts for so long")
    parser.add_argument("--out", type=place, help="folder of make run; default: settings")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Answer or list; a failure is one message that says what to do."""
    options = _parse(argv)
    if options.out is not None:
        os.environ.update(below(options.out))
    try:
        run(options, time.time())
    except (UsageError, NotWaitingError) as error:
        print_lines([f"approve: {error}"], sys.stderr)
        return EXIT_USAGE
    except NotAllowedError as error:
        print_lines([f"approve: NO ANSWER WAS GIVEN: {error}"], sys.stderr)
        return 1
    except (StoreUnreadableError, SettingsError) as error:
        print_lines([f"approve: NO ANSWER WAS GIVEN: {error}"], sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    leave_pandas_out()
    sys.exit(main(sys.argv[1:]))
