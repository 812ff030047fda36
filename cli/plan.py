"""``tidewise plan``: the steps that the newest plans send within the next hours, of all jobs or of some."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from cli.arguments import CommandParser, number
from cli.command import command
from cli.known_jobs import check_scope, read_known_jobs
from cli.printing import print_lines
from cli.questions import (
    add_common,
    cluster_and_job,
    open_reader,
)
from fleet.facts import FleetStatus, StepFact
from fleet.health import Fault, describe_age
from fleet.plain import to_json
from fleet.plans import select_due
from fleet.shown import show_due, show_moment, show_rate, show_time, split_reason
from models.control.log_lines import describe_change
from models.scheduling.figures import format_count, format_late


def describe_step(step: StepFact, now_s: float) -> str:
    """Return a step on one line, with what it expects."""
    late = "" if step.late_minutes is None else f", {format_late(step.late_minutes)}"
    expected = f"load q90 {show_rate(step.load_q90_per_s)}, capacity {show_rate(step.capacity_per_s)}{late}"
    change = describe_change(step.parallelism_from, step.parallelism_to)
    slots = f"{step.slots_from} -> {format_count(step.slots_to or 0, 'slot')}"
    why, _ = split_reason(step.reason)
    return f"{show_due(step.apply_at_s, now_s)} {step.cluster}/{step.job}: {slots} ({change}): {why}; {expected}"


def describe_plan(facts: FleetStatus, steps: Sequence[StepFact], hours: float, jobs: Sequence[str] = ()) -> list[str]:
    """Return the steps, and of how many of the jobs nothing is planned; none named: of all."""
    lines = [describe_step(step, facts.at_s) for step in steps]
    lines = lines or [f"nothing is planned within {hours:g} h"]
    running = [one for one in facts.jobs if not one.has_ended and (not jobs or f"{one.cluster}/{one.job}" in jobs)]
    refused = [one for one in running if one.plan_status == "refused"]
    lines += [f"no plan for {one.cluster}/{one.job}: {one.plan_reason}" for one in refused]
    newest_s = max((one.plan_as_of_s for one in facts.jobs if one.plan_as_of_s is not None), default=None)
    lost = [fact.detail for fact in facts.health if fact.name == Fault.TABLE_LOST]
    if newest_s is None:
        return lost or ["no plan was ever made: make run, or switch tidewise_hour on"]
    stays = len(running) - len({(one.cluster, one.job) for one in steps}) - len(refused)
    made = f"{show_time(newest_s, facts.at_s)}, {describe_age(max(facts.at_s - newest_s, 0.0))} ago"
    stay = f"{stays} of {format_count(len(running), 'job')} {'stays as it is' if stays == 1 else 'stay as they are'}"
    return [*lost, *lines, f"{stay}; newest plan of {made}"]


def run(options: argparse.Namespace, now_s: float) -> int:
    """Print what is planned."""
    settings, reader = open_reader(options)
    facts = reader.read(options.at.timestamp() if options.at else now_s)
    for job in options.jobs:
        if job not in {f"{one.cluster}/{one.job}" for one in facts.jobs}:
            check_scope(job, settings, read_known_jobs(settings, now_s))
    steps = select_due(facts, options.hours, options.jobs)
    if options.json:
        print(to_json("plan", {"at_s": facts.at_s, "hours": options.hours, "steps": steps}))
        return 0
    newest_s = facts.newest_s
    lines = describe_plan(facts, steps, options.hours, options.jobs)
    if not steps and newest_s is not None and facts.at_s - newest_s > 24 * 3600:
        lines.append(f"to look at the plan of that time: tidewise plan --at {show_moment(newest_s)}")
    print_lines(lines)
    return 0


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("jobs", nargs="*", type=cluster_and_job, help="cluster/job; none: all")
    parser.add_argument("--hours", type=number(0, 24 * 14, above=True), default=6.0, help="how far ahead (6)")
    add_common(parser)


main = command("plan", __doc__, _add_arguments, run, reads=True)
