"""``tidewise status``: the fleet on one screen, and what to do; the exit code is 1 when something needs a person."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cli.arguments import CommandParser
from cli.command import command
from cli.printing import print_lines
from cli.questions import add_common, open_reader
from fleet.facts import ClusterStatus, FleetStatus, HealthFact
from fleet.health import Fault, describe_age
from fleet.metrics import format_metrics
from fleet.plain import to_json
from fleet.plans import select_due
from fleet.shown import describe_hold, show_due, show_moment, show_time
from include.atomic_write import write_text
from include.flink.job_states import RUNNING
from include.utc import DAY_S
from models.scheduling.figures import format_count

_MOST_LINES = 8
_TITLES = {
    Fault.WAITS_FOR_PERSON: "Waits for your ",
    Fault.FOREIGN_CHANGE: "Changed by somebody else",
}


def describe_fleet(facts: FleetStatus) -> list[str]:
    """Return the screen."""
    faults = [one for one in facts.health if one.needs_person]
    what = f"{format_count(len(faults), 'thing')} {'needs' if len(faults) == 1 else 'need'} you"
    lines = [f"{what if faults else 'Nothing needs you'} ({show_time(facts.at_s, facts.at_s)})"]
    lines += _warn_of_age(facts)
    lines += _describe_faults(faults)
    lines += ["", "Clusters"]
    lines += [f"  {_describe_cluster(facts, one)}" for one in facts.clusters] or ["  none is known yet"]
    lines += ["", f"Holds: {'none' if not facts.holds else ''}".rstrip()]
    lines += [f"  {describe_hold(one, facts.at_s)} -> {one.release}" for one in facts.holds[:_MOST_LINES]]
    steps = select_due(facts, 6)
    jobs = format_count(len({(one.cluster, one.job) for one in steps}), "job")
    lines += ["", f"Planned within 6 h: {format_count(len(steps), 'step')} on {jobs} (tidewise plan)"]
    lines += [
        f"  {show_due(one.apply_at_s, facts.at_s)} {one.cluster}/{one.job}: {one.slots_from} -> "
        f"{format_count(one.slots_to, 'slot')}"
        for one in steps[:3]
    ]
    return lines


def _warn_of_age(facts: FleetStatus) -> list[str]:
    newest_s = facts.newest_s
    if newest_s is None or facts.at_s - newest_s < 2 * DAY_S:
        return []
    at = show_time(newest_s, facts.at_s)
    age = describe_age(facts.at_s - newest_s)
    again = f"tidewise status --at {show_moment(newest_s)}"
    return [f"The data end at {at}, {age} before now; to look at that time: {again}"]


def _describe_faults(faults: Sequence[HealthFact]) -> list[str]:
    lines: list[str] = []
    for name in dict.fromkeys(one.name for one in faults):
        mine = [one for one in faults if one.name == name]
        title = next((text for fault, text in _TITLES.items() if fault == name), name.replace("_", " ").capitalize())
        lines += ["", f"{title} ({name})"]
        scopes_of = {
            (one.detail, one.remedy): [each.scope for each in mine if each.detail == one.detail] for one in mine
        }
        for (detail, remedy), scopes in list(scopes_of.items())[:_MOST_LINES]:
            where = "" if scopes == ["all"] else f"{', '.join(scopes)}: "
            lines += [f"  {where}{detail}", f"    -> {remedy}"]
        if len(scopes_of) > _MOST_LINES:
            lines.append(f"  and {len(scopes_of) - _MOST_LINES} more (--json lists all)")
    return lines


def _describe_cluster(facts: FleetStatus, one: ClusterStatus) -> str:
    jobs = [job for job in facts.jobs if job.cluster == one.cluster]
    running = [job for job in jobs if not job.has_ended]
    modes = Counter(job.mode for job in running)
    shown = ", ".join(f"{count} {mode}" for mode, count in sorted(modes.items())) or f"mode {one.mode}"

    def age(at_s: float | None) -> str:
        return "never" if at_s is None else f"{describe_age(max(facts.at_s - at_s, 0.0))} ago"

    is_known = any((fact.name, fact.scope) == (Fault.CONTROLLER_LATE, one.cluster) for fact in facts.health)
    controller = age(one.ticked_at_s) if is_known else "not known of this time"
    slots = sum(job.slots_now or 0 for job in running)
    down = [job for job in running if job.state not in {"", RUNNING}]
    stopped = f"; not running: {', '.join(f'{one.job} ({one.state})' for one in down[:_MOST_LINES])}" if down else ""
    ended = f", {len(jobs) - len(running)} ended" if len(jobs) > len(running) else ""
    return (
        f"{one.cluster}: {format_count(len(running), 'job')} ({shown}), {format_count(slots, 'slot')}{ended}; "
        f"controller {controller}, plan {age(one.plan_as_of_s)}, metrics {age(one.metrics_until_s)}{stopped}"
    )


def run(options: argparse.Namespace, now_s: float) -> int:
    """Print the screen; returns 1 when something needs a person."""
    _, reader = open_reader(options)
    facts = reader.read(options.at.timestamp() if options.at else now_s)
    if options.prometheus is not None:
        write_text(options.prometheus, format_metrics(facts))
        return 0
    content = {"at_s": facts.at_s, "needs_person": facts.needs_person, "health": facts.health}
    if options.json_file is not None:
        write_text(options.json_file, to_json("status", content))
    if options.json:
        content |= {"clusters": facts.clusters, "models": facts.models, "holds": facts.holds}
        content |= {"waiting": facts.waiting, "jobs": facts.jobs}
        print(to_json("status", content))
    else:
        print_lines(describe_fleet(facts))
    return int(facts.needs_person)


def _add_arguments(parser: CommandParser) -> None:
    add_common(parser)
    parser.add_argument(
        "--prometheus", type=Path, help="write metrics for node_exporter's textfile collector to this file"
    )
    parser.add_argument("--json-file", type=Path, help="also write what needs a person, as JSON, to this file")


main = command("status", __doc__, _add_arguments, run, reads=True)
