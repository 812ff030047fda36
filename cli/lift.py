"""``tidewise lift``: let a job, or a parallelism, be tried again that failed, or list what is blocked."""

from __future__ import annotations

import argparse
import getpass
import math
from collections.abc import Sequence
from datetime import UTC, datetime

from deltalake.exceptions import DeltaError

from cli.arguments import CommandParser, UsageError
from cli.command import add_person, command, read_settings
from cli.printing import print_lines
from controller.limits.lost_restraints import OF_SETTINGS, name_confirmation
from controller.log.delta_log import open_control_log, read_known_jobs
from controller.log.log_codec import unique_names
from fleet.acts.lifts import lift_blocks
from fleet.waiting import Block
from include.control.lifted_blocks import LiftedBlockStore
from include.settings import Settings
from models.control.bad_steps import name_suspension
from models.control.limits import Limits
from models.control.state import BlockedTarget, JobHistory
from models.scheduling.figures import format_count

Blocked = dict[str, list[tuple[BlockedTarget, str]]]
"""``cluster/job`` -> its blocks, each with the parallelism as a person reads it."""


def read_blocked(settings: Settings, now_s: float) -> Blocked:
    """Return what is blocked now, of all jobs, without what was lifted already."""
    lifted = {(one.cluster, one.job, one.block_id) for one in LiftedBlockStore(settings.paths.lake).read()}
    try:
        known = read_known_jobs(open_control_log(settings.paths.lake), sorted(settings.clusters), now_s)
    except (DeltaError, OSError):  # no controller has written yet
        return {}
    result: Blocked = {}
    for job, one in sorted(known.items()):
        cluster, _, name = job.partition("/")
        names = unique_names(one.last.provenance.operators)
        for block in one.last.history.blocked:
            if now_s < block.until_s and (cluster, name, block.block_id) not in lifted:
                target = ", ".join(f"{names.get(key, key)} {n}" for key, n in sorted(block.parallelism.items()))
                result.setdefault(job, []).append((block, target))
        if suspension := _find_suspension(settings, job, one.last.history, [each for *_, each in lifted]):
            result.setdefault(job, []).append((suspension, "every step"))
    return result


def _find_suspension(settings: Settings, job: str, history: JobHistory, lifted: Sequence[str]) -> BlockedTarget | None:
    """Return what keeps a job in dry-run since its steps went wrong; None when nothing does."""
    cluster, _, name = job.partition("/")
    levels = (settings.limits, settings.cluster(cluster).limits, settings.job_limits(cluster, name))
    most = min(level.bad_steps_max for level in levels if level.bad_steps_max is not None)
    block_id = name_suspension(history, Limits(bad_steps_max=most, lifted_blocks=tuple(lifted)))
    because = f"{format_count(most, 'step')} rolled back or failed within a day"
    return BlockedTarget({}, math.inf, block_id, because) if block_id else None


def lift(options: argparse.Namespace, now_s: float) -> None:
    """Lift the blocks of a job that only a person lifts.

    Raises:
        UsageError: there is none.
        StoreUnreadableError: nothing was lifted.
    """
    settings = read_settings(options)
    by, reason = options.by or getpass.getuser(), " ".join(options.reason or ())
    if options.settings:
        block = Block("block", OF_SETTINGS, OF_SETTINGS, name_confirmation(), "the settings file as it is", "", None)
        for lifted in lift_blocks(settings, [block], by=by, reason=reason, now_s=now_s):
            print_lines([lifted])
        return
    blocked = read_blocked(settings, now_s)
    if options.list or options.job is None:
        print_lines(_describe(blocked))
        return
    mine = [one for one in blocked.get(options.job, []) if one[0].block_id]
    if not mine:
        raise UsageError(f"nothing of {options.job!r} waits for a person; blocked: {'; '.join(_describe(blocked))}")
    cluster, _, job = options.job.partition("/")
    blocks = [Block("block", cluster, job, one.block_id, target, one.because, None) for one, target in mine]
    for lifted in lift_blocks(settings, blocks, by=by, reason=reason, now_s=now_s):
        print_lines([f"{options.job}: {lifted}"])


def _describe(blocked: Blocked) -> list[str]:
    lines = [
        f"{job}: {target}, {_until(block)}{f': {block.because}' if block.because else ''}"
        for job, blocks in blocked.items()
        for block, target in blocks
    ]
    return lines or ["nothing is blocked"]


def _until(block: BlockedTarget) -> str:
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
