"""``tidewise approve``: answer a step that waits for a person (mode ``approve``), list what waits, or lift a no."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from cli.arguments import CommandParser, UsageError, number
from cli.command import add_person, command, read_settings
from cli.permission import require_role
from cli.printing import print_lines
from fleet.acts.answers import NotWaitingError, find_waiting_step, give_answer
from include.control.approvals import NOBODY, Approval, ApprovalStore
from include.control.interventions import Intervention, UserAction, record_intervention
from include.orchestration.waiting_steps import read_waiting_steps
from include.settings import Settings


def run(options: argparse.Namespace, now_s: float) -> None:
    """Answer a step, list what waits, or lift a no.

    Raises:
        UsageError: there is no such no, or not one that this person may lift.
        NotAllowedError: this person may not answer.
        StoreUnreadableError: the answer was not written, so it does not count.
    """
    settings = read_settings(options)
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
    try:
        step = find_waiting_step(waiting, options.job, options.step_id)
    except NotWaitingError as error:
        raise UsageError(str(error)) from error
    reason = " ".join(options.reason or ())
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
        act = Intervention(now_s, UserAction.LIFT, f"{one.cluster}/{one.job}", by, "", detail, one.step_id)
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


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("job", nargs="?", help="cluster/job")
    parser.add_argument("step_id", nargs="?", help="as --list shows it")
    parser.add_argument("--list", action="store_true", help="show what waits")
    parser.add_argument("--deny", action="store_true", help="say no")
    parser.add_argument("--lift", action="store_true", help="take back a no: your own, or as an admin anybody's")
    parser.add_argument("--hours", type=number(0, 8760, above=True), help="the answer counts for so long")
    add_person(parser)


main = command("approve", __doc__, _add_arguments, run, failed="NO ANSWER WAS GIVEN: ")
