"""``python -m benchmarks.live.morning``: one job over hours with a morning's rise, planned by the hourly DAG meanwhile.

The days before are simulated, ingested and trained on; then the controller runs beside the job, in auto, and Airflow
runs ``tidewise_hour`` at its own times. A call goes on where the last one ended, from its savepoint, with the load of
the clock: what lies between is no part of any figure.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.live.__main__ import TRACES, Progress, find_calibration, prepare
from benchmarks.live.calibration import Calibration
from benchmarks.live.calls import run_call
from benchmarks.live.hourly_runs import HourlyRuns
from benchmarks.live.live_job import JOBS, QUERY_JOBS, SLOTS
from benchmarks.live.load_window import BIN_S
from benchmarks.live.morning_load import DAYS_BEFORE, LaidTrace, continue_load, holds_rise, lay_trace
from benchmarks.live.morning_report import PartResult, format_morning, join_parts, read_parts, write_part
from benchmarks.live.policies import TIDEWISE
from benchmarks.live.run import Part, RunPlan, run_policy
from benchmarks.live.settings import CLUSTER, PRODUCT
from benchmarks.replay.replay_traces import read_trace
from cli.arguments import CommandParser, UsageError, moment, number, whole_number
from cli.embedded import below
from cli.out_lock import hold_folder
from cli.process_group import exit_on_sigterm
from include.atomic_write import write_json, write_text
from include.flink.faults import FlinkError
from include.settings import SETTINGS_FILE_VARIABLE, load_settings
from include.spark.submission import anchor_paths
from include.stage_names import Stage
from page.saving import save_page
from tools.readme_run import draw

DEFAULT_TRACE = "nab_nyc_taxi_30min"
"""Of the shipped traces the one whose nights are the deepest: the rise is to several times the load."""
RISE_AFTER = timedelta(hours=2)
LEAST_MINUTES = 3.0
_STARTS_S = 90.0
"""For the cluster of a part, before its job is submitted."""
_ENDS_S = 240.0
"""Of a part, for a DAG run under way, what is left to work off, the savepoint and the page."""
# The join of q3 keeps every person and auction: over hours more than a heap that checkpoints copy each minute.
_STATE = {
    "state.backend.type": "rocksdb",
    "execution.checkpointing.incremental": "true",
    "state.backend.rocksdb.memory.managed": "false",
    "state.backend.rocksdb.writebuffer.size": "4mb",
}


@dataclass(frozen=True, slots=True)
class Course:
    """What is fixed by the first call.

    Attributes:
        trace, hours, seed: of its arguments.
        begins_s: epoch seconds of the first window's begin.
        rise_at_s: epoch seconds of the rise's begin.
    """

    trace: str
    hours: float
    seed: int
    begins_s: float
    rise_at_s: float

    @classmethod
    def read(cls, folder: Path) -> Course:
        """Return what the first call wrote."""
        return cls(**json.loads((folder / "course.json").read_text(encoding="utf-8")))

    @property
    def submitted_s(self) -> float:
        """Epoch seconds of the first submission, second 0 of the load."""
        return self.begins_s - PRODUCT.lead_s


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the arguments."""
    parser = CommandParser(prog="morning", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--job", choices=QUERY_JOBS, default="q3", help="query of Nexmark (default: q3)")
    parser.add_argument("--hours", type=number(0, 24, above=True), default=6.0, help="of the load that are measured")
    parser.add_argument(
        "--part-minutes", type=number(5, 1440), default=1440.0, help="after which this call ends with a savepoint"
    )
    parser.add_argument("--rise-at", type=moment, help="when the rise begins (default: two hours after the load)")
    parser.add_argument("--seed", type=whole_number(0), default=1, help="of the noise of the load")
    parser.add_argument("--trace", default=DEFAULT_TRACE, help="name of a file of data/traces without endings")
    parser.add_argument("--days", type=whole_number(1, DAYS_BEFORE), default=DAYS_BEFORE, help="of history")
    parser.add_argument("--prepare-minutes", type=number(1, 120), default=12.0, help="for ingestion and training")
    parser.add_argument("--hour-every-s", type=number(1, 3600), help="tries the command: the DAG runs so often")
    parser.add_argument("--report", action="store_true", help="make the tables of the parts that are there, no more")
    parser.add_argument("--out", type=Path, default=Path("out"))
    return parser.parse_args(argv)


def lay(course: Course, calibration: Calibration) -> LaidTrace:
    """Return the load by the clock."""
    values = read_trace(TRACES / f"{course.trace}.csv.gz").values
    return lay_trace(values, course.rise_at_s, calibration.capacity_per_s(SLOTS))


def begin(options: argparse.Namespace, folder: Path, calibration: Calibration) -> Course:
    """Make the history and train on it; returns the course, which is written."""

    def choose(begins: datetime) -> Course:
        rise_at_s = (options.rise_at or begins + RISE_AFTER).timestamp() // BIN_S * BIN_S
        return Course(options.trace, options.hours, options.seed, begins.timestamp(), rise_at_s)

    begins = prepare(
        calibration,
        lambda at: lay(choose(at), calibration).cut_window(at.timestamp(), options.hours),
        options,
        (folder, options.seed, PRODUCT),
        (Stage.INGEST, Stage.TRAIN),
    )
    course = choose(begins)
    write_json(folder / "course.json", asdict(course))
    return course


def run_part(
    options: argparse.Namespace, folder: Path, calibration: Calibration, ends_s: float, say: Callable[[str], None]
) -> None:
    """Make the next part, the history before it if it is the first.

    Raises:
        UsageError: the part is too short, or the rise would be cut.
    """
    parts = read_parts(folder)
    if parts:
        course = Course.read(folder)
        if is_whole(parts, course):
            say("all hours are measured")
            return
        begins_s = time.time() + _STARTS_S + PRODUCT.lead_s
    else:
        say("history and models")
        course = begin(options, folder, calibration)
        begins_s = course.begins_s
    laid = lay(course, calibration)
    starts_s = round(begins_s - PRODUCT.lead_s - course.submitted_s)
    begins_s = course.submitted_s + starts_s + PRODUCT.lead_s
    remaining = 60 * course.hours - sum(one.run.minutes for one in parts)
    minutes = min(remaining, (ends_s - begins_s) / 60)
    span_s = (begins_s, begins_s + 60 * minutes)
    clocks = [f"{datetime.fromtimestamp(at, UTC):%H:%M}" for at in (*span_s, *laid.rise_s)]
    if minutes < min(LEAST_MINUTES, remaining):
        raise UsageError(f"{minutes:.0f} minutes are left for the load: pass more --part-minutes")
    if holds_rise(span_s, laid.rise_s) is False:
        raise UsageError(
            f"the rise, {clocks[2]} to {clocks[3]} UTC, would be cut by this part, {clocks[0]} to {clocks[1]}: begin "
            "before it with time for all of it, or after it"
        )
    say(f"part {len(parts) + 1}: {minutes:.0f} of {remaining:.0f} minutes, {clocks[0]} to {clocks[1]} UTC; "
        f"the rise: {clocks[2]} to {clocks[3]}")  # fmt: skip
    due_s = max((hour.due_s for one in parts for hour in one.hours), default=course.begins_s)
    last_s = due_s if options.hour_every_s is None else begins_s - PRODUCT.lead_s
    hours = HourlyRuns(folder, options.job, last_s, options.hour_every_s, say)
    before = parts[-1].run if parts else None
    end_s = starts_s + PRODUCT.lead_s + 60 * minutes
    plan = RunPlan(
        TIDEWISE,
        course.seed,
        minutes,
        course.trace,
        continue_load(before.load if before else (), laid, course.submitted_s, (starts_s, end_s), course.seed),
        begins_s,
        PRODUCT,
        loses=False,
        part=Part(
            len(parts) + 1,
            starts_s,
            _STATE,
            before.savepoint if before else "",
            folder / "savepoints",
            hours.running(),
            before.actions[-1][1] if before and before.actions else None,
        ),
    )
    result = run_policy(plan, calibration, folder, None, say)
    if result.trouble:
        raise FlinkError(result.trouble)
    write_part(folder, len(parts) + 1, PartResult(result, hours.runs))
    take_picture(folder, len(parts) + 1, options.job, span_s[1], say)


def take_picture(folder: Path, number: int, job: str, at_s: float, say: Callable[[str], None]) -> None:
    """Save the product's page as of the end of a part, and its picture of the job where there is a Chromium."""
    page = folder / f"page-{number}.html"
    settings = anchor_paths(load_settings())
    save_page(settings, os.environ, at_s, page, read_curves=lambda *_: (), code_version="")
    try:
        draw(page, f"{CLUSTER}/{job}", page.with_suffix(".png"))
    except (FileNotFoundError, subprocess.SubprocessError) as error:
        say(f"no picture of {page}: {error}")


def report(options: argparse.Namespace, folder: Path, calibration: Calibration, say: Callable[[str], None]) -> bool:
    """Write the tables of what is there, and print them; returns whether all hours are measured."""
    parts, course = read_parts(folder), Course.read(folder)
    last, is_done, rows = parts[-1].run, is_whole(parts, course), None
    if is_done and last.records_in is not None:
        rows = JOBS[options.job].count_expected_rows(last.records_in, folder / f"flink-{len(parts)}")
    morning = join_parts(parts, lay(course, calibration), course.submitted_s, calibration, rows)
    table = format_morning(morning, f"{options.job}, {course.hours:g} hours")
    write_json(folder.with_suffix(".json"), {**asdict(course), **asdict(morning)})
    write_text(folder.with_suffix(".md"), table)
    say(f"written: {folder.with_suffix('.md')}\n\n{table}")
    return is_done


def is_whole(parts: Sequence[PartResult], course: Course) -> bool:
    """Whether all hours are measured."""
    return sum(one.run.minutes for one in parts) > 60 * course.hours - 0.01


def measure(options: argparse.Namespace) -> int:
    """Make the next part, and the tables of all."""
    progress = Progress()
    folder = (options.out / f"morning-{options.job}").resolve()
    ends_s = time.time() + 60 * options.part_minutes - _ENDS_S
    os.environ |= {**below(folder), SETTINGS_FILE_VARIABLE: str(folder / "tidewise.toml")}
    with hold_folder(options.out, "benchmarks.live.morning", f".{folder.name}.lock"):
        calibration = find_calibration(options.job, (options.out / "live").resolve(), progress.say)
        if not options.report:
            run_part(options, folder, calibration, ends_s, progress.say)
        if not read_parts(folder):
            raise UsageError(f"no part below {folder}: leave --report out")
        is_done = report(options, folder, calibration, progress.say)
    if not is_done:
        progress.say("the same command goes on")
    return 0


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    exit_on_sigterm()
    options = parse(argv)
    return run_call("morning", "from the last savepoint", lambda: measure(options))


if __name__ == "__main__":
    sys.exit(main())
