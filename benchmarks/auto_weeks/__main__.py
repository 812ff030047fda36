"""``python -m benchmarks.auto_weeks``: two weeks of mode auto against a double of Flink; every poll takes place.

The controller's process polls and ticks over HTTP; the time between is skipped. A job of the simulator follows a
shipped trace, and upgrades, lost nodes, slots that do not come, persons, kills and requests that fail befall it.
"""

from __future__ import annotations

import csv
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.auto_weeks.events import draw_events
from benchmarks.auto_weeks.job_double import CLUSTER, STEP_S, JobDouble
from benchmarks.auto_weeks.judgement import Judge, Judgement, show
from benchmarks.auto_weeks.server import Life, Run, serving
from benchmarks.chaos.log_rows import LogRows
from cli.arguments import CommandParser, number, require_writable, whole_number
from cli.embedded import below
from include.atomic_write import replace_atomically
from include.settings import PROJECT, SETTINGS_FILE_VARIABLE, load_settings
from include.utc import DAY_S, format_utc
from lab.commands.simulated_jobs import load_simulated_jobs
from lab.commands.traces import load_traces
from lab.local_flink.processes import end_process, start_process
from lab.simulation.capacity import find_needed_parallelism
from lab.simulation.fleet import pack
from lab.simulation.source_load import draw_source_rates

START = datetime(2026, 1, 5, tzinfo=UTC)  # a Monday
SLOTS_MAX = 32
_INTERVAL_S, _BARRIER_S, _FIRST_SHARE = 60.0, 5.0, 0.7
_CPU_S = 0.04  # of a poll, with its share of evaluations and of the double
_SETTINGS = """
[clusters.{cluster}]
rest_url = "{url}"
slots_max = {slots_max}

[clusters.{cluster}.limits]
mode = "auto"
"""


def build_job(name: str, days: float, seed: int) -> JobDouble:
    """Return a shipped simulated job under its load, with checkpoints every minute.

    Raises:
        KeyError: no job has this name.
    """
    described = {one.spec.name: one for one in load_simulated_jobs()}[name]
    spec = replace(described.spec, checkpoint_interval_s=_INTERVAL_S, barrier_delay_s=_BARRIER_S, slots_max=SLOTS_MAX)
    steps = round(days * DAY_S / STEP_S) + 60
    drawn = draw_source_rates(
        described.loads, load_traces(), 0, steps=steps, step_s=STEP_S, generator=np.random.default_rng(seed)
    )
    rates = np.zeros((steps, len(spec.operators)))
    rates[:, [not operator.upstream for operator in spec.operators]] = drawn.T
    fleet = pack([spec])
    load = (fleet.mean_gain @ rates[:1, :, None])[..., 0]
    first = find_needed_parallelism(fleet.curves, load, _FIRST_SHARE)[0]
    return JobDouble(spec, rates, START.timestamp(), tuple(first.tolist()), seed)


def make_run(run: Run, work: Path) -> int:
    """Run the controller until the end, with a process after each that is killed; returns the last one's exit code."""
    settings = work / "tidewise.toml"
    with replace_atomically(settings) as temporary:
        temporary.write_text(_SETTINGS.format(cluster=CLUSTER, url=run.url, slots_max=run.slots_max))
    os.utime(settings, (run.now_s - DAY_S, run.now_s - DAY_S))  # what is new in a file does not count at once
    os.environ |= {**below(work), SETTINGS_FILE_VARIABLE: str(settings), "PYTHONPATH": str(PROJECT)}
    until = format_utc(datetime.fromtimestamp(run.end_s, UTC))
    command = [sys.executable, "-m", "benchmarks.auto_weeks.jumping_clock", run.url, "--until", until]
    run.go_to(run.now_s + run.draws.uniform(0.0, 60.0))
    while True:
        with run.lock:
            run.lives.append(Life(run.now_s))
            run.controller = start_process(command, work / "controller.log", {})
        code = run.controller.wait()
        with run.lock:
            run.controller, life = None, run.lives[-1]
            life.ended_s = run.now_s
            if not life.killed:
                return code
            run.go_to(run.now_s + run.draws.uniform(10.0, 300.0))


def write_report(judgement: Judgement, out: Path) -> list[Path]:
    """Write the table as CSV and Markdown; returns their paths."""
    names = (
        "at",
        "event",
        "what",
        "runs as asked after, s",
        "next request after, s",
        "late, s",
        "wrong until the next",
    )
    rows = [
        (
            show(one.happened.at_s),
            one.happened.event.kind,
            one.happened.what,
            *("" if value is None else f"{value:.0f}" for value in (one.settled_s, one.request_s, one.late_s)),
            "; ".join(one.wrong) or "nothing",
        )
        for one in judgement.outcomes
    ]
    table, page = out / "events.csv", out / "auto_weeks.md"
    with table.open("w", newline="") as sink:
        csv.writer(sink).writerows([names, *rows])
    lines = ["| " + " | ".join(cells) + " |" for cells in (names, ["---"] * len(names), *rows)]
    figures = [f"- {name}: {value}" for name, value in judgement.figures]
    page.write_text("\n".join(["# Two weeks of auto", "", *figures, "", *summarise(judgement), "", *lines, ""]))
    return [table, page]


def summarise(judgement: Judgement) -> list[str]:
    """Return what was stranded and lost, a sentence each."""
    named = (("STRANDED", judgement.stranded), ("LOST", judgement.lost))
    wrong = [f"{name}: {show(at_s)}: {what}" for name, listed in named for at_s, what in listed]
    return wrong or ["Nothing stranded, nothing lost."]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns 1 when something was stranded or lost."""
    parser = CommandParser(prog="auto_weeks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--days", type=number(0.15, 60), default=14.0, help="how many (default: 14)")
    parser.add_argument("--seed", type=whole_number(0), default=1, help="of load, noise and events (default: 1)")
    parser.add_argument("--job", default="fleet-telemetry", help="of data/simulated_jobs (default: fleet-telemetry)")
    parser.add_argument("--out", type=Path, default=Path("out/auto_weeks"), help="for the table")
    parser.add_argument("--keep", action="store_true", help="keep tables, polls and logs of the run, too")
    options = parser.parse_args(argv)
    console = Console()
    require_writable(options.out)
    job = build_job(options.job, options.days, options.seed)
    end_s = job.start_s + options.days * DAY_S
    events = draw_events(random.Random(options.seed), job.start_s, options.days)
    run = Run(job, events, end_s, SLOTS_MAX, options.seed)
    polls = round(options.days * 1440)
    console.print(f"{polls:,} polls, about {_CPU_S * polls / 60:.0f} min of a processor", highlight=False)
    work = Path(tempfile.mkdtemp(prefix="run-", dir=options.out)).resolve()
    try:
        with serving(run):
            try:
                code = make_run(run, work)
            finally:
                if run.controller is not None:
                    end_process(run.controller, grace_s=0)
        settings = load_settings()
        rows = LogRows(work / "lake").read()
        judgement = Judge(run, rows, settings, CLUSTER, work / "raw").judge()
    finally:
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)
    if code:
        console.print(f"the controller ended with {code}; see {work / 'controller.log'}", highlight=False)
    for line in (*(f"{name}: {value}" for name, value in judgement.figures), *summarise(judgement)):
        console.print(line, highlight=False)
    for path in write_report(judgement, options.out):
        console.print(f"written: {path}", highlight=False)
    return int(code != 0 or bool(judgement.stranded or judgement.lost))


if __name__ == "__main__":
    sys.exit(main())
