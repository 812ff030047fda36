"""``make run``: the main job end to end on embedded defaults, through the real DAGs.

Shipped data (a recorded cluster, a simulated history) -> ingest -> train -> forecast -> plan -> control (dry run).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console

from cli.arguments import CommandParser, moment, whole_number
from cli.command import command
from cli.dag_client import DagClient, DagFailedError
from cli.embedded import airflow_environment
from cli.out_lock import hold_paths
from cli.process_group import exit_on_sigterm
from cli.progress import ProgressLog
from cli.raw_import import FileSource
from cli.run_table import open_console, plan_table
from include.atomic_write import write_json
from include.entry_points import EntryPointError, find_command
from include.place import local_beside, place
from include.raw_files import list_file_hours
from include.settings import PROJECT, Settings
from include.stage_names import Stage
from include.utc import IntervalError, ceil_hour, floor_hour, format_utc, parse_utc
from models.scheduling.figures import format_count

RECORDING = PROJECT / "data" / "recording"
RECORDINGS = (RECORDING, PROJECT / "data" / "recording_sql")  # of a DataStream job, and of SQL jobs
MOST_DAYS = 366
RECOVERY_S = 60  # after a restart, jobs of the history are polled each minute so long
PARTS = {
    "data": "the recordings, and a simulated history",
    "ingest": "raw files become observations of every operator",
    "train": "capacity, recovery and latency models of every job",
    "forecast": "the rate of every source",
    "plan": "the steps of every job",
    "report": "one HTML page",
    "control": "the controller's tick at the first step: what it would do, without a request to any cluster",
}


class RunError(RuntimeError):
    """The run cannot begin; the message says what to do."""


def end_of_recording(recording: Path = RECORDING) -> datetime:
    """Return the end of the last hour that a recording has files of.

    Raises:
        RunError: there is no recording.
    """
    hours = list_file_hours(recording)
    if not hours:
        raise RunError(f"{recording} holds no recording: make one with `python -m tools.record`, or pass --as-of")
    return hours[-1] + timedelta(hours=1)


def place_data(settings: Settings, as_of: datetime, days: int) -> None:
    """Put the recordings and the history below the raw root (what is there already is kept)."""
    raw = place(settings.paths.raw)
    for recording in RECORDINGS:
        if recording.is_dir():
            FileSource(recording).deliver(raw)
    asked = {"--days": days, "--end": format_utc(ceil_hour(as_of)), "--out": raw, "--recovery-s": RECOVERY_S}
    if find_command("history")([str(word) for option in asked.items() for word in option]):
        raise RunError("the simulated history was not made: the line above says why")


def choose_tick(settings: Settings, as_of: datetime) -> datetime:
    """Return the tick at which the first planned step is due if the plan is still fresh then, else ``as_of`` itself.

    A dry run at ``as_of`` would have nothing to decide when every step lies ahead.
    """
    plan = json.loads((place(settings.paths.out) / "plans.json").read_text())
    planned = [parse_utc(row["apply_at"]) for row in plan if row["status"] == "planned"]
    if not planned:
        return as_of
    first = min(planned)
    fresh = as_of <= first <= as_of + timedelta(hours=settings.apply.max_plan_age_h)
    return first if fresh else as_of


def run_dags(settings: Settings, progress: ProgressLog, as_of: datetime, days: int, log: Path) -> None:
    """Make the data while Airflow starts, then run the DAGs in the order of the data.

    Raises:
        DagFailedError: a task failed.
    """
    end = floor_hour(as_of)
    with DagClient(airflow_environment(settings), log, progress.begin) as client, ExitStack() as stack:
        progress.begin("data")
        place_data(settings, as_of, days)
        stack.enter_context(progress.never_silent())

        def dag(name: str, part: str, **conf: datetime) -> None:
            progress.begin(part)  # Java starts first, and only then the stage itself says so
            client.run(name, {key: format_utc(value) for key, value in conf.items()})

        dag("tidewise_ingest", Stage.INGEST, start=end - timedelta(days=days), end=end)
        dag("tidewise_train", Stage.TRAIN, as_of=as_of)
        dag("tidewise_plan", Stage.FORECAST, as_of=as_of)
        dag("tidewise_control", "control", as_of=choose_tick(settings, as_of))
        progress.end()


def outcome(settings: Settings, progress: ProgressLog) -> dict[str, object]:
    """Return the counts of the run from what its stages wrote down."""
    folder = place(settings.paths.out) / "stages"
    result = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    sources = {
        "jobs": "plan",
        "rows": "ingest",
        "quarantined": "ingest",
        "models": "train",
        "forecasts": "forecast",
        "steps": "plan",
    }
    counts: dict[str, object] = {name: int(result[stage][name]) for name, stage in sources.items()}
    return counts | {"seconds": progress.seconds}


def describe_outcome(result: Mapping[str, Any]) -> str:
    """Return the line that a run ends with."""
    return (
        f"run: {format_count(result['jobs'], 'job')}, {result['rows']} rows, {result['quarantined']} quarantined,"
        f" {result['models']} models, {format_count(result['steps'], 'step')}, {sum(result['seconds'].values()):.0f} s"
    )


def run(settings: Settings, options: argparse.Namespace, console: Console) -> int:
    """Do everything; returns the exit code."""
    progress = ProgressLog(console, PARTS)
    out = place(settings.paths.out)
    as_of = options.as_of or end_of_recording()
    for path in (out / "stages").glob("*.json"):  # counts of an earlier run are not this run's
        path.unlink()
    progress.say(f"Tidewise plans from {format_utc(as_of)}; everything is written below {out}")
    run_dags(settings, progress, as_of, options.days, PROJECT / local_beside(str(out)) / "run.log")
    result = outcome(settings, progress)
    write_json(out / "run.json", result)
    console.print(plan_table(json.loads((out / "plans.json").read_text())))
    console.print(f"report: {out / 'report.html'}", soft_wrap=True, highlight=False)
    print(describe_outcome(result))
    return 0


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--as-of", type=moment, help="plan as of this time; default: the end of the recording")
    parser.add_argument("--out", type=place, default=PROJECT / "out", help="write everything below this directory")
    parser.add_argument("--days", type=whole_number(1, MOST_DAYS), default=21, help="length of the simulated history")
    parser.add_argument("--apply-mode", choices=["dry-run", "auto"], default="dry-run", help="auto: send to Flink")


def _run(options: argparse.Namespace, _: float) -> int:
    exit_on_sigterm()
    with hold_paths(options.out, "make run", {"TIDEWISE__LIMITS__MODE": options.apply_mode}) as settings:
        return run(settings, options, open_console())


main = command(
    "run",
    __doc__,
    _add_arguments,
    _run,
    errors=(RunError, DagFailedError, EntryPointError, IntervalError),
    stopped="stopped; run it again to continue from what is there",
)
