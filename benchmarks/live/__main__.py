"""``make live``: policies one after the other on one real Flink cluster and the same load at its own speed.

Each run is a JSON file below ``<out>/live/runs``; a later call makes what is missing or was discarded, and the page.
Calls for other runs may go on beside it in the same folder, while the processors have room for both.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.live.autoscaler import REPOSITORY, build_jar, find_jar
from benchmarks.live.calibration import Calibration, calibrate, find_known, list_unmeasured, read_calibration
from benchmarks.live.calls import run_call
from benchmarks.live.estimate import RunKey, estimate_minutes, list_missing
from benchmarks.live.history import STAGES, choose_begin, make_plans, request_history
from benchmarks.live.live_job import JOBS, SLOTS
from benchmarks.live.load_window import LoadWindow, choose_window, make_trace
from benchmarks.live.policies import POLICIES, TIDEWISE
from benchmarks.live.publish import publish
from benchmarks.live.report import write_report
from benchmarks.live.results import CPU_MAX, write_result
from benchmarks.live.run import RunPlan, run_policy
from benchmarks.live.settings import PRODUCT, SHORT, Pace
from benchmarks.replay.replay_traces import read_trace
from cli.arguments import CommandParser, UsageError, number, whole_number
from cli.out_lock import hold_folder
from include.settings import PROJECT
from include.stage_names import Stage

TRACES = PROJECT / "data" / "traces"
DEFAULT_POLICIES = (TIDEWISE, "controller_alone", "flink_autoscaler", "flink_autoscaler_tuned", "none")
DEFAULT_TRACE = "dsp_alibaba_5min"
"""Of the shipped traces the one with the steepest rise and fall within forty minutes."""
LEAST_OF_PRODUCT_PACE = 20.0
_AGAIN = 1.5


class Progress:
    """Lines with the time since the start."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line."""
        print(f"{(time.monotonic() - self._began_s) / 60:6.1f} min  {text}", flush=True)


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the arguments."""
    parser = CommandParser(prog="live", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--job", nargs="+", choices=list(JOBS), default=["q3"], help="of them (default: q3)")
    parser.add_argument("--policy", nargs="+", choices=list(POLICIES), default=list(DEFAULT_POLICIES))
    parser.add_argument("--minutes", type=number(3, 240), default=40.0, help="of the load that is measured")
    parser.add_argument("--seed", nargs="+", type=whole_number(0), default=[1], help="of the noise of the load")
    parser.add_argument("--trace", default=DEFAULT_TRACE, help="name of a file of data/traces without endings")
    parser.add_argument("--days", type=whole_number(1, 28), default=14, help="most days of history before the load")
    parser.add_argument(
        "--prepare-minutes", type=number(1, 120), default=12.0, help="for ingestion, training and plans of Tidewise"
    )
    parser.add_argument(
        "--pace",
        choices=["product", "short"],
        help="times of controller and policies (default: product from 20 min on)",
    )
    parser.add_argument("--no-loss", action="store_true", help="no TaskManager is lost")
    parser.add_argument(
        "--slots-after-s",
        type=number(0, 3600),
        default=0.0,
        help="the second TaskManager starts so long after its slots are asked for, and none is lost (default: at once)",
    )
    parser.add_argument(
        "--allow-busy", action="store_true", help=f"keep runs above {CPU_MAX:.0%}% of all processors, marked as invalid"
    )
    parser.add_argument("--report", action="store_true", help="make table and page of the runs that are there, no more")
    parser.add_argument(
        "--publish",
        action="store_true",
        help="as --report; copy valid runs to benchmarks/live/results, write the pages",
    )
    parser.add_argument("--autoscaler-jar", type=Path, help="flink-autoscaler-standalone; else it is built")
    parser.add_argument("--autoscaler-source", default=REPOSITORY, help="what git clones to build it")
    parser.add_argument("--maven", default="", help="further arguments of Maven, separated by spaces")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args(argv)
    options.report |= options.publish
    return options


def find_calibration(job: str, folder: Path, say: Callable[[str], None]) -> Calibration:
    """Return what was measured of a job; what no earlier call measured is measured now."""
    file = folder / f"calibration-{job}.json"
    known = find_known(file)
    if known is not None and not list_unmeasured(known):
        return known
    # A job that is measured beside another one would be given too small a capacity.
    with hold_folder(folder.parent, "make live, which measures a job", ".live-calibration.lock"):
        return calibrate(job, known, folder / "calibration", file, say)


def prepare(
    calibration: Calibration,
    find_window: Callable[[datetime], LoadWindow],
    options: argparse.Namespace,
    place: tuple[Path, int, Pace],
    stages: Sequence[Stage] = STAGES,
) -> datetime:
    """Make history, models and plans of Tidewise; returns when the window begins.

    Args:
        calibration: of the job.
        find_window: returns the window that begins at a time.
        options: of the call.
        place: folder and seed of the run, and its pace.
        stages: what is done with the history.

    Raises:
        UsageError: the stages took longer than they have, twice.
    """
    folder, seed, pace = place
    minutes = options.prepare_minutes
    for _ in range(2):
        begins = choose_begin(datetime.now(UTC), minutes)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        began_s = time.monotonic()
        load_begins = begins - timedelta(seconds=pace.lead_s)
        request = request_history(calibration, find_window(begins), begins, folder, (options.days, seed))
        make_plans(request, folder, load_begins, pace.slots_after_s, stages)
        if datetime.now(UTC) + timedelta(minutes=0.5) < load_begins:
            return begins
        minutes = _AGAIN * (time.monotonic() - began_s) / 60 + 5
    raise UsageError(f"the stages took longer than they have: pass --prepare-minutes {minutes:.0f}")


def run_one(
    key: RunKey, options: argparse.Namespace, folder: Path, jar: Path | None, say: Callable[[str], None]
) -> bool:
    """Make one run and write its result; returns whether it is a measurement."""
    calibration = read_calibration(folder / f"calibration-{key.job}.json")
    pace = choose_pace(options)
    trace = read_trace(TRACES / f"{options.trace}.csv.gz")
    window = choose_window(trace.values, options.minutes, calibration.capacity_per_s(SLOTS))
    work = folder / "work" / f"{key.job}-{key.policy}-{key.seed}"
    shutil.rmtree(work, ignore_errors=True)
    if key.policy == TIDEWISE:
        say(f"{key.policy}: history, models and plans")
        begins_s = prepare(calibration, lambda _: window, options, (work, key.seed, pace)).timestamp()
    else:
        begins_s = time.time() + pace.lead_s
    load = make_trace(window, pace.lead_s, options.minutes, key.seed)
    plan = RunPlan(
        key.policy,
        key.seed,
        options.minutes,
        options.trace,
        load,
        begins_s,
        pace,
        loses=not (options.no_loss or pace.slots_after_s),
    )
    result = run_policy(plan, calibration, work, jar if "autoscaler" in key.policy else None, say)
    path, figures = write_result(folder, result), result.measures
    say(
        f"{key.policy}: {figures.late_minutes:.1f} late minutes, {figures.slot_hours:.2f} slot-hours, "
        f"{figures.rescales} rescales, {figures.down_s:.0f} s down, records lost {result.records_lost}, {path}"
    )
    if not result.is_valid:
        why = result.trouble or f"processors {result.cpu_share:.0%} busy, above {CPU_MAX:.0%}"
        say(f"{key.policy}: no measurement: {why}")
    return result.is_valid or (options.allow_busy and not result.trouble)


def choose_pace(options: argparse.Namespace) -> Pace:
    """Return the pace of a call."""
    is_short = options.minutes < LEAST_OF_PRODUCT_PACE if options.pace is None else options.pace == "short"
    return replace(SHORT if is_short else PRODUCT, slots_after_s=options.slots_after_s)


def list_keys(options: argparse.Namespace) -> Iterator[RunKey]:
    """Yield the runs of a call, in the order in which they are made."""
    for seed in options.seed:
        for job in options.job:
            yield from (RunKey(policy, job, seed) for policy in options.policy)


def run_all(options: argparse.Namespace, folder: Path, say: Callable[[str], None]) -> bool:
    """Make all runs that are missing; returns whether each is a measurement."""
    missing = list_missing(folder, list(list_keys(options)), options.minutes, accepts_invalid=options.allow_busy)
    unknown = [job for job in options.job if list_unmeasured(find_known(folder / f"calibration-{job}.json"))]
    needs_jar = any("autoscaler" in key.policy for key in missing)
    builds = needs_jar and options.autoscaler_jar is None and find_jar() is None
    left = estimate_minutes(
        missing,
        len(unknown) if missing else 0,
        options.minutes + choose_pace(options).lead_s / 60,
        options.prepare_minutes,
        builds=builds,
    )
    ends = datetime.now().astimezone() + timedelta(minutes=left)
    say(f"{len(missing)} runs, about {left:.0f} minutes in all: until {ends:%H:%M} if nothing is discarded")
    if not missing:
        return True
    jar = options.autoscaler_jar
    if builds:
        say("Flink's autoscaler is built from its sources")
        jar = build_jar(options.autoscaler_source, options.maven.split())
    elif needs_jar and jar is None:
        jar = find_jar()
    for job in dict.fromkeys(key.job for key in missing):
        find_calibration(job, folder, say)
    results = []
    for place, key in enumerate(missing):
        say(f"run {place + 1} of {len(missing)}: {key.policy} on {key.job}, seed {key.seed}")
        results.append(run_one(key, options, folder, jar, say))
    return all(results)


def measure(options: argparse.Namespace) -> int:
    """Make what is missing, the table and the page; returns the exit code: 1 where a run is no measurement."""
    folder, progress = (options.out / "live").resolve(), Progress()
    with ExitStack() as held:
        for key in () if options.report else dict.fromkeys(list_keys(options)):
            file = f".live-{key.job}-{key.policy}-{key.seed}.lock"
            held.enter_context(hold_folder(options.out, "make live", file))
        are_valid = options.report or run_all(options, folder, progress.say)
        page = write_report(folder, progress.say)
        for path in publish(folder) if options.publish else ():
            progress.say(f"written: {path}")
    progress.say(f"written: {page}")
    return 0 if are_valid else 1


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    options = parse(argv)
    return run_call("live", "with what is missing", lambda: measure(options))


if __name__ == "__main__":
    sys.exit(main())
