"""``make replay``: all policies on real traces, from a cold start, with the same noise and failures."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks.replay.autoscaler_java.jar_driver import NAME as JAR
from benchmarks.replay.best_forms import read_forms
from benchmarks.replay.cost_rows import write_costs
from benchmarks.replay.cost_summary import describe_bound
from benchmarks.replay.cpu_estimate import describe_estimate
from benchmarks.replay.replay_candidates import check_names, list_names
from benchmarks.replay.replay_cases import ReplayCase, Row, count_windows, replay_in_processes
from benchmarks.replay.replay_jobs import FILE_HELP, JOBS, read_job
from benchmarks.replay.replay_tables import build_tables, write
from benchmarks.replay.replay_traces import ColumnChoice, TraceError
from benchmarks.replay.scenarios import SCENARIOS, apply_scenario
from benchmarks.replay.synthetic_loads import SYNTHETIC, read_load
from cli.arguments import CommandParser, number, require_writable_file, whole_number
from cli.process_group import exit_on_sigterm
from include.policy_catalogue import Decides
from include.settings import Costs, Planner, Timing
from include.utc import HOUR_S
from lab.replay.candidate_policies import list_deciding
from lab.replay.conditions import Conditions, ConditionsError, DecisionSchedule, Prices
from lab.replay.replay_run import CandidateError
from lab.replay.scores import SEGMENTS
from lab.simulation.spec import SpecError

TRACES = Path(__file__).resolve().parents[2] / "data" / "traces"
WIDTH = 120  # where the output is no terminal
# Plans come a quarter of an hour after the full hour; of a shorter interval, one tick after it.
PLAN_AFTER_S = 900
SCENARIO_HELP = f"other loads, disturbances and times that changes take: {', '.join(SCENARIOS)} (default: none of them)"


def build_parser() -> CommandParser:
    """Return the command line."""
    result = CommandParser(
        prog="replay",
        description=__doc__,
        epilog=f"Built-in jobs: {', '.join(JOBS)}.\n\n{FILE_HELP}\n\nPolicies: {', '.join(list_names())}; when named "
        f"{', '.join((JAR, *read_forms()))}.\n\nSynthetic loads, for tuning: {', '.join(SYNTHETIC)}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument(
        "--trace",
        type=Path,
        nargs="+",
        action="extend",
        metavar="FILE",
        help="CSV of times and rates, or a synthetic load's NAME or NAME:SEED (default: data/traces)",
    )
    result.add_argument("--time-column", metavar="NAME", help="header or number of the column of times")
    result.add_argument("--rate-column", metavar="NAME", help="header or number of the column of rates")
    result.add_argument(
        "--time-format", metavar="FORMAT", help="of dates: %%d/%%m/%%Y %%H:%%M, say (default: ISO 8601)"
    )
    result.add_argument(
        "--policy",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="candidate policies (default: all); clairvoyant always runs",
    )
    result.add_argument(
        "--job", nargs="+", action="extend", metavar="SPEC", help="job or JSON file (default: wordcount)"
    )
    result.add_argument(
        "--scenario", nargs="+", action="extend", choices=sorted(SCENARIOS), metavar="NAME", help=SCENARIO_HELP
    )
    result.add_argument("--seeds", type=whole_number(1), default=3, metavar="N", help="runs per policy (default: 3)")
    result.add_argument(
        "--first-seed", type=whole_number(0), default=0, metavar="N", help="of the runs (default: 0; of tuning: 100)"
    )
    result.add_argument(
        "--days", type=number(0, 36_600, above=True), metavar="N", help="only the first N days of each trace"
    )
    result.add_argument("--json", type=Path, metavar="OUT", help="where the rows go (default: out/replay.json)")
    result.add_argument("--plot", type=Path, metavar="OUT.png", help="load, slots and costs as a picture")
    prices, cadence = Prices(), DecisionSchedule()
    result.add_argument(
        "--lag-target-s", type=number(0, 1e9), default=prices.lag_target_s, help="late beyond it (default: 60)"
    )
    result.add_argument(
        "--late-weight", type=number(0, 1e9), default=prices.late, help="cost of a late minute (default: 0.4)"
    )
    result.add_argument(
        "--tick", type=whole_number(1), default=cadence.tick_s, metavar="S", help="reactive cadence (default: 300)"
    )
    result.add_argument(
        "--plan-every",
        type=whole_number(1),
        default=cadence.plan_every_s,
        metavar="S",
        help="between plans (default: 3600)",
    )
    result.add_argument(
        "--plan-after",
        type=whole_number(0),
        metavar="S",
        help="from the last window that a plan knows to the plan (default: 900, the DAG's; one tick for shorter plans)",
    )
    result.add_argument(
        "-j", "--jobs", type=whole_number(1), default=os.cpu_count() or 1, metavar="N", help="processes"
    )
    return result


def build_conditions(options: argparse.Namespace) -> Conditions:
    """Return the conditions that the command line asks for.

    Raises:
        ConditionsError: a cadence that does not fit together.
    """
    after = options.plan_after
    if after is None:
        after = PLAN_AFTER_S if options.plan_every >= HOUR_S else min(options.tick, options.plan_every - options.tick)
    cadence = DecisionSchedule(tick_s=options.tick, plan_every_s=options.plan_every, plan_after_s=after)
    prices = Prices(late=options.late_weight, lag_target_s=options.lag_target_s)
    costs = Costs(
        resource_weight=prices.slots,
        late_weight=prices.late,
        rescale_weight=prices.rescale,
        late_after_s=prices.lag_target_s,
    )
    planner = Planner(costs=costs, timing=Timing(apply_every_s=cadence.tick_s))
    return Conditions(cadence, prices, planner=planner)


def describe(conditions: Conditions, seeds: int) -> list[str]:
    """Return what is the same for every candidate policy, as lines."""
    cadence, prices, disturbances = conditions.cadence, conditions.prices, conditions.disturbances
    least, most = disturbances.rescale_downtime_s
    planned, slow = ", ".join(list_deciding(Decides.AHEAD)), ", ".join(list_deciding(Decides.WITH_PLANS))
    return [
        f"cost per minute = {prices.slots:g} x slots / maximum slots + {prices.late:g} if late, + {prices.rescale:g} "
        f"per rescale; late: the oldest unprocessed record is older than {prices.lag_target_s:g} s",
        f"plans every {cadence.plan_every_s} s, from windows up to {cadence.plan_after_s} s before ({planned} and the "
        f"planner); due steps, the reactive controller and reactive policies every {cadence.tick_s} s, which favours "
        f"the latter; {slow} act with the plans, by windows up to that time",
        "models nightly at 02:30 UTC from a candidate's own windows (up to "
        f"{conditions.training.lookback_days} days); cold start",
        f"{seeds} seeds, the same for all candidates: {disturbances.failures_per_day} failure a day of about "
        f"{disturbances.failure_downtime_s:g} s and what came since the last checkpoint "
        f"({disturbances.checkpoint_interval_s:g} s interval); rescales {least:g}-{most:g} s, once a checkpoint is "
        f"completed; measured rates +-{disturbances.measurement_noise:.0%}, "
        f"true capacity +-{disturbances.capacity_noise:.0%}; "
        f"{conditions.limits.cooldown_s:g} s between rescales",
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Replay the traces one after the other; what is done is written after each."""
    command = build_parser()
    options = command.parse_args(argv)
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    exit_on_sigterm()
    try:
        conditions = build_conditions(options)
        chosen = list(dict.fromkeys(options.policy or list_names()))
        forms = read_forms()
        check_names(chosen, (*forms, JAR))
        policies = tuple(chosen if "clairvoyant" in chosen else [*chosen, "clairvoyant"])
        jobs = list(dict.fromkeys(options.job or ["wordcount"]))
        for job in jobs:
            read_job(job)
        columns = ColumnChoice(options.time_column, options.rate_column, options.time_format)
        if columns != ColumnChoice() and not options.trace:
            command.error("--time-column, --rate-column and --time-format say what is in the files of --trace")
        traces = [read_load(path, columns).cut_days(options.days) for path in options.trace or list_traces()]
        for path, option in ((options.json, "--json"), (options.plot, "--plot")):
            if path is not None:
                require_writable_file(path, option)
    except (ConditionsError, TraceError, SpecError, ValueError) as error:
        command.error(str(error))
    for line in describe(conditions, options.seeds):
        console.print(line, highlight=False)
    runs = len(jobs) * len(options.scenario or [None])
    days = runs * sum(trace.days for trace in traces)
    console.print(describe_estimate(policies, options.seeds, days), highlight=False)
    out = options.json or Path("out/replay.json")
    costs = out.with_suffix(".csv")
    rows: list[Row] = []
    for trace in traces:
        console.print(f"[bold]{trace.name}[/]: {trace.days:.1f} days; {'; '.join(trace.notes)}", highlight=False)
        for job, scenario in itertools.product(jobs, options.scenario or [None]):
            case = ReplayCase(trace, job, policies, list_seeds(options), conditions, forms=forms)
            if scenario is not None:
                case = apply_scenario(case, scenario)
                console.print(f"{scenario}: {SCENARIOS[scenario].about}", highlight=False)
            try:
                rows += replay(case, options, console)
            except CandidateError as error:
                console.print(f"[bold red]replay: {error}[/]", soft_wrap=True)
                return 1
            write(rows, out)
            write_costs(rows, costs)
    console.print(f"written: {out}, {len(rows)} rows; {costs}: python -m benchmarks.replay.cost_summary {costs}")
    return 0


def list_seeds(options: argparse.Namespace) -> tuple[int, ...]:
    """Return the seeds that the command line asks for."""
    return tuple(range(options.first_seed, options.first_seed + options.seeds))


def list_traces() -> list[Path]:
    """Return the shipped traces."""
    return sorted(TRACES.glob("*.csv*"))


def replay(case: ReplayCase, options: argparse.Namespace, console: Console) -> list[Row]:
    """Run one trace and job, print its tables and draw its plot."""
    began = time.monotonic()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(f"{case.trace.name}, {case.job}", total=count_windows(case))
        result = replay_in_processes(case, options.jobs, lambda windows: progress.update(task, completed=windows))
    console.print(*build_tables(result.rows, SEGMENTS), sep="\n")
    if tightness := describe_bound(result.rows, "all"):
        console.print(tightness, highlight=False)
    console.print(f"{time.monotonic() - began:.0f} s for {len(case.policies)} candidates x {len(case.seeds)} seeds")
    busy = {name: count for name, count in result.refused.items() if count}
    if busy:
        refused = ", ".join(f"{name} {count}" for name, count in busy.items())
        console.print(
            f"rescales asked for while the job was down or cooling down, not carried out: {refused}", highlight=False
        )
    if options.plot:
        from benchmarks.replay.replay_plots import draw, name_plot

        path = name_plot(options.plot, case.trace.name, case.job, several=len(options.trace or [1, 2]) > 1)
        draw(result, case, path)
        console.print(f"plot: {path}")
    return result.rows


if __name__ == "__main__":
    sys.exit(main())
