"""``tidewise lift``: let a job, or a parallelism, be tried again that failed, or list what is blocked."""

from __future__ import annotations

import argparse
import getpass
import math
from collections.abc import Sequence
from datetime import UTC, datetime

from cli.arguments import CommandParser, UsageError
from cli.command import add_person, command
from cli.printing import print_lines
from cli.questions import open_reader
from controller.limits.lost_restraints import OF_SETTINGS, name_confirmation
from fleet.acts.lifts import lift_blocks
from fleet.waiting import Block


def lift(options: argparse.Namespace, now_s: float) -> None:
    """Lift the blocks of a job that only a person lifts.

    Raises:
        UsageError: there is none.
        StoreUnreadableError: nothing was lifted.
    """
    settings, reader = open_reader(options)
    by, reason = options.by or getpass.getuser(), " ".join(options.reason or ())
    if options.settings:
        block = Block("block", OF_SETTINGS, OF_SETTINGS, name_confirmation(), "the settings file as it is", "", None)
        for lifted in lift_blocks(settings, [block], by=by, reason=reason, now_s=now_s):
            print_lines([lifted])
        return
    blocked = reader.read_blocks(now_s)
    if options.list or options.job is None:
        print_lines(_describe(blocked))
        return
    mine = [one for one in blocked if f"{one.cluster}/{one.job}" == options.job and one.block_id]
    if not mine:
        raise UsageError(f"nothing of {options.job!r} waits for a person; blocked: {'; '.join(_describe(blocked))}")
    for lifted in lift_blocks(settings, mine, by=by, reason=reason, now_s=now_s):
        print_lines([f"{options.job}: {lifted}"])


def _describe(blocked: Sequence[Block]) -> list[str]:
    lines = [
        f"{one.cluster}/{one.job}: {one.target}, {_until(one)}{f': {one.because}' if one.because else ''}"
        for one in blocked
    ]
    return lines or ["nothing is blocked"]


def _until(block: Block) -> str:
    if math.isinf(block.until_s):
        return "until a person lifts it"
    return f"until {datetime.fromtimestamp(block.until_s, UTC):%Y-%m-%d %H:%M}Z"


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("job", nargs="?", help="cluster/job; none: what is blocked is listed")
    parser.add_argument("--list", action="store_true", help="show what is blocked")
    parser.add_argument(
        "--settings", action="store_true", help="confirm the settings file: what it left out counts no more"
    )
    add_person(parser)


main = command("lift", __doc__, _add_arguments, lift, failed="NOTHING WAS LIFTED: ")
