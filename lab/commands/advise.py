"""``tidewise advise``: what the last days would have cost under Tidewise, others and constants: one HTML page and JSON.

History in (the shipped one, or ``--raw DIR``) -> ingest, unless `make run` has done it -> models trained before the
days that are appraised -> every job replayed. Nothing is sent to any cluster, and what `make run` wrote stays as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from cli.arguments import CommandParser, UsageError, folder, moment, number, whole_number
from cli.command import command
from cli.embedded import below
from cli.import_hours import SETTLED
from cli.out_lock import hold_folder
from cli.preflight import PreflightError
from cli.process_group import exit_on_sigterm
from cli.progress import ProgressLog
from cli.run import MOST_DAYS, RunError, end_of_recording, place_data
from cli.run_table import open_console
from cli.setup_steps import SetupError
from fleet import frontier
from include.atomic_write import replace_atomically
from include.metric_sources.prometheus.client import PrometheusError
from include.metric_sources.prometheus.graphs import SavedGraphError
from include.metric_sources.prometheus.import_hours import import_cluster, name_empty
from include.raw_files import LAYOUT, list_file_hours
from include.settings import PROJECT, Settings, load_settings
from include.settings.advise import Advise
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.utc import HOUR, Interval, IntervalError, floor_hour, format_utc, parse_utc
from lab.commands.spark_application import ApplicationError, bring_jars, run_application
from models.scheduling.figures import format_count

FOLDER = "advise"
SERVER = "prometheus"  # name of the cluster that --prometheus stands for
PAGE, FIGURES = "advice.html", "advice.json"
PARTS = {
    "data": "the recording, and a simulated history",
    "ingest": "raw files become observations of every operator",
    "train": "models of every job, from what was before the days that are appraised",
    "advise": "every job's days are replayed",
}
BEFORE = timedelta(days=2)  # without so much history before the days, nothing is learnt


@dataclass(frozen=True, slots=True)
class Source:
    """Where the history comes from.

    Attributes:
        raw: the raw files; None where they were ingested already.
        silver: the tables of `make run`; None where raw files are ingested.
        first, end: of the history, full hours.
    """

    raw: Path | None
    silver: Path | None
    first: datetime
    end: datetime


def find_source(options: argparse.Namespace) -> Source:
    """Return the history that was asked for: the raw files, else what `make run` has ingested, else shipped data.

    Raises:
        RunError: the folder holds none.
    """
    if options.prometheus is not None:
        end = options.as_of or floor_hour(datetime.now(UTC) - SETTLED)
        return Source(options.out / FOLDER / "prometheus", None, end - timedelta(days=options.history_days), end)
    if options.raw is not None:
        first, end = list_hours(options.raw)
        return Source(options.raw, None, first, options.as_of or end)
    ingested = options.out / "stages" / "ingest.json"
    silver = options.out / "lake" / "silver"
    if silver.is_dir() and ingested.is_file():
        result = json.loads(ingested.read_text())
        first, end = parse_utc(result["start"]), parse_utc(result["end"])
        return Source(None, silver, first, options.as_of or end)
    end = options.as_of or end_of_recording()
    return Source(options.out / FOLDER / "raw", None, floor_hour(end) - timedelta(days=21), floor_hour(end))


def list_hours(raw: Path) -> tuple[datetime, datetime]:
    """Return the begin of the first and the end of the last hour that a folder has raw files of.

    Raises:
        RunError: it has none.
    """
    hours = list_file_hours(raw)
    if not hours:
        raise RunError(f"{raw} holds no raw files at {LAYOUT}: pass the folder that holds the folders cluster=<name>")
    return hours[0], hours[-1] + HOUR


def set_up_folder(work: Path, source: Source) -> None:
    """Begin anew below a folder of its own; the tables of `make run` are read where they are."""
    for name in ("lake", "mlartifacts", "stages"):
        shutil.rmtree(work / name, ignore_errors=True)
    for file in work.glob("mlflow.db*"):
        file.unlink()
    (work / "lake").mkdir(parents=True)
    if source.silver is not None:
        (work / "lake" / "silver").symlink_to(source.silver.resolve(), target_is_directory=True)


def fetch_history(source: Source, settings: Settings) -> None:
    """Write the raw files of every hour that has none yet, from Prometheus; with a bar of the hours.

    Raises:
        PrometheusError: a query was not answered; the hours before stay, and the next call goes on.
    """
    columns = (TextColumn("history"), BarColumn(), MofNCompleteColumn(), TextColumn("hours"), TimeRemainingColumn())
    hours = Interval(source.first, source.end)
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("history", total=(source.end - source.first) / timedelta(hours=1))
        made = import_cluster(settings, SERVER, hours, lambda: progress.advance(bar))
    if made.empty:
        print(f"advise: {name_empty(SERVER, made.empty)}", file=sys.stderr)


def set_environment(options: argparse.Namespace, work: Path, source: Source) -> None:
    """Put the flags and the places of this command into the settings' variables."""
    result = below(work)
    if source.raw is not None:
        result["TIDEWISE__PATHS__RAW"] = str(source.raw.resolve())
    server = {
        "PROMETHEUS__URL": options.prometheus,
        "PROMETHEUS__GRAPHS": options.graphs and options.graphs.resolve(),
        "REST_URL": options.rest_url,
    }
    result |= {f"TIDEWISE__CLUSTERS__{SERVER}__{key}": str(value) for key, value in server.items() if value is not None}
    flags = {
        "JOBS": options.jobs,
        "DAYS": options.days,
        "PRICE_PER_SLOT_HOUR": options.price_per_slot_hour,
        "CURRENCY": options.currency,
        "SEEDS": options.seeds,
    }
    result |= {f"TIDEWISE__ADVISE__{key}": str(value) for key, value in flags.items() if value is not None}
    os.environ.update(result)


def check_length(source: Source, settings: Settings) -> datetime:
    """Return when the days that are appraised begin.

    Raises:
        RunError: there is too little history before them.
    """
    first_day = source.end - timedelta(days=settings.advise.days)
    if first_day - source.first < BEFORE:
        have = (source.end - source.first) / timedelta(days=1)
        most = int((source.end - BEFORE - source.first) / timedelta(days=1))
        remedy = f"pass --days {most}" if most >= 1 else "collect some days more"
        raise RunError(
            f"{have:.1f} days of history are too short to appraise {settings.advise.days} of them: "
            f"{BEFORE.days} days before them are needed to learn from; {remedy}"
        )
    return first_day


def appraise(source: Source, settings: Settings, progress: ProgressLog, work: Path) -> None:
    """Run the stages.

    Raises:
        ApplicationError: a stage failed.
    """
    log = work / "advise.log"
    log.unlink(missing_ok=True)
    first_day = check_length(source, settings)
    if source.raw is not None:
        if source.raw == work / "raw":
            progress.begin("data")
            place_data(settings, source.end, round((source.end - source.first) / timedelta(days=1)))
        if source.raw == work / "prometheus":
            progress.begin("data")
            fetch_history(source, settings)
        progress.begin("ingest")
        ingest = StageRequest(Stage.INGEST, source.end, source.first, source.end)
        run_application(settings, [ingest], log, progress)
    progress.begin("train")
    # Both as of the first day: nothing of the days themselves is in the models.
    run_application(settings, name_stages(settings.advise.jobs, first_day, source.end), log, progress)
    progress.end()


def name_stages(jobs: str, first_day: datetime, end: datetime) -> list[StageRequest]:
    """Return what the jobs that are asked for, a regular expression, are trained and appraised by, and no other job."""
    asked = None if jobs == Advise().jobs else jobs
    return [StageRequest(stage, first_day, first_day, end, jobs=asked) for stage in (Stage.TRAIN, "advise")]


def format_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table whose first column is words and whose others are figures."""
    table = Table(title=title, title_justify="left")
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place else "left")
    for row in rows:
        table.add_row(*row)
    return table


def summary_table(advice: dict[str, Any], settings: Settings) -> Table:
    """Return all jobs together under each option, as a table."""
    currency = settings.advise.currency
    heads = ("under", "slots", f"{currency} a month", "saved, with interval", "late minutes a day", "rescales a day")
    rows = [
        (
            row["title"],
            f"{row['slots']:,.1f}",
            f"{row['money_per_month']['mean']:,.0f}",
            "{mean:+,.0f} ({low:+,.0f} to {high:+,.0f})".format(**row["money_saved_per_month"]),
            f"{row['late_minutes']['mean']:,.1f}",
            f"{row['rescales']['mean']:,.1f}",
        )
        for row in advice["totals"]
    ]
    return format_table("All jobs together, a day's means", heads, rows)


def goals_table(curves: Sequence[dict[str, Any]]) -> Table:
    """Return what all jobs take together under each goal, and under a rival over its headroom, as a table."""
    heads = {"slot-hours": "slot_hours", "late minutes": "late_minutes", "rescales": "rescales"}
    rows = [
        (f"{curve['title']}: {one['label']}", *(f"{one[name]:,.1f}" for name in heads.values()))
        for curve in curves
        for one in curve["points"]
    ]
    return format_table("Named goals, and headroom of another, a day's means", ("under", *heads), rows)


def run(options: argparse.Namespace, console: Console) -> int:
    """Do everything; returns the exit code."""
    source, work = find_source(options), options.out / FOLDER
    set_environment(options, work, source)
    settings = load_settings()
    bring_jars(settings)
    set_up_folder(work, source)
    taken = {"ingest"} if source.raw is None else set()
    parts = {name: about for name, about in PARTS.items() if name not in taken}
    if source.raw == work / "prometheus":
        parts["data"] = "the history that Prometheus has"
    elif source.raw is None or source.raw != work / "raw":
        del parts["data"]
    progress = ProgressLog(console, parts)
    whence = "what `make run` has ingested" if source.raw is None else str(source.raw)
    progress.say(f"{settings.advise.days} days up to {format_utc(source.end)} of {whence}")
    appraise(source, settings, progress, work)
    for name in (PAGE, FIGURES, frontier.FILE):
        with replace_atomically(options.out / name) as temporary:
            shutil.copy(work / name, temporary)
    advice = json.loads((options.out / FIGURES).read_text())
    console.print(summary_table(advice, settings))
    if advice["curves"]:
        console.print(goals_table(advice["curves"]))
    times = [(part, f"{value:,.0f}") for part, value in progress.seconds.items()]
    console.print(format_table("What took time", ("part", "seconds"), times))
    for one in advice["skipped"]:
        console.print(f"left out: {one['cluster']}/{one['job']}: {one['why']}", markup=False, highlight=False)
    against = [one for one in advice["jobs"] if one["verdict"]["is_against"]]
    for one in against:
        reported = f"advised against: {one['cluster']}/{one['job']}: {one['verdict']['sentence']}"
        console.print(reported, markup=False, highlight=False, soft_wrap=True)
    console.print(f"page: {options.out / PAGE}, figures: {options.out / FIGURES}", soft_wrap=True, highlight=False)
    total = sum(progress.seconds.values())
    print(f"advise: {format_count(len(advice['jobs']), 'job')}, {len(against)} advised against, {total:.0f} s")
    return 0


def add_arguments(parser: CommandParser) -> None:
    """Add what a user may ask for."""
    defaults = Advise()
    parser.add_argument("--raw", type=folder, help="folder of raw files (cluster=/date=/hour=)")
    parser.add_argument("--prometheus", help="address of a Prometheus-compatible server")
    parser.add_argument(
        "--history-days", type=whole_number(3, MOST_DAYS), default=21, help="days that are read from Prometheus"
    )
    parser.add_argument("--rest-url", help="with --prometheus: address of the JobManager, for the jobs' graphs")
    parser.add_argument(
        "--graphs", type=folder, help="with --prometheus: saved replies of /jobs/<job id>, where there is no --rest-url"
    )
    parser.add_argument("--jobs", "--job-regex", help="regular expression of cluster/job; default: all")
    parser.add_argument("--days", type=whole_number(1, MOST_DAYS), help=f"days to appraise; default {defaults.days}")
    parser.add_argument("--price-per-slot-hour", type=number(0, 1e6), help=f"default {defaults.price_per_slot_hour}")
    parser.add_argument("--currency", help=f"of the price; default {defaults.currency}")
    parser.add_argument(
        "--seeds", type=whole_number(1, 100), help=f"random draws of each policy; default {defaults.seeds}"
    )
    parser.add_argument("--as-of", type=moment, help="end of the days; default: the end of the history")
    parser.add_argument("--out", type=Path, default=PROJECT / "out", help="where `make run` writes, or has written")


def check_options(options: argparse.Namespace) -> None:
    """Refuse options that do not go together.

    Raises:
        UsageError: with what is expected.
    """
    if options.prometheus is not None and options.raw is not None:
        raise UsageError("--raw and --prometheus: expected one of the two")
    if options.prometheus is None and (options.rest_url is not None or options.graphs is not None):
        raise UsageError("--rest-url and --graphs: expected together with --prometheus")
    if options.as_of is not None and floor_hour(options.as_of) != options.as_of:
        raise UsageError(f"--as-of: expected a full hour, not {format_utc(options.as_of)}")


def _run(options: argparse.Namespace, _: float) -> int:
    exit_on_sigterm()
    check_options(options)
    with hold_folder(options.out, "tidewise advise"):
        return run(options, open_console())


main = command(
    "advise",
    __doc__,
    add_arguments,
    _run,
    errors=(
        RunError,
        ApplicationError,
        IntervalError,
        ValidationError,
        PreflightError,
        PrometheusError,
        SavedGraphError,
        SetupError,
    ),
    stopped="stopped; run it again at any time",
)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
