"""``make nexmark ARGS="--dynamics"``: what is measured and done while something changes, beside the truth."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.nexmark.cpu import CpuMeter
from benchmarks.nexmark.dynamics.jobs import JOBS
from benchmarks.nexmark.dynamics.measures import judge_events
from benchmarks.nexmark.dynamics.policies import AUTOSCALERS, NAMES
from benchmarks.nexmark.dynamics.run import Conditions, run_side_by_side
from benchmarks.nexmark.dynamics.schedule import make_schedule
from benchmarks.nexmark.dynamics.tables import print_tables
from benchmarks.nexmark.dynamics.verdicts import list_shortfalls
from cli.arguments import EXIT_USAGE, CommandParser, UsageError, number
from cli.out_lock import hold_folder
from include.atomic_write import write_json, write_text
from include.flink.faults import FlinkError
from include.settings import PROJECT
from tools.marked_page import put_between_marks

DOCUMENT = PROJECT / "docs" / "nexmark" / "tables.md"
MARKS = ("<!-- dynamics: begin -->", "<!-- dynamics: end -->")


def main(argv: Sequence[str]) -> int:
    """Entry point; a run that has ended is in ``<out>/nexmark_dynamics.json``, and another is added to it."""
    parser = CommandParser(prog="nexmark --dynamics", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", nargs="+", choices=sorted(JOBS), default=list(JOBS))
    parser.add_argument("--policies", nargs="+", choices=NAMES, default=["tidewise", "autoscaler-port-2min"])
    parser.add_argument("--minutes", type=number(3, 600), default=44.0, help="of a run, after its start")
    parser.add_argument("--checkpoint-every-s", type=number(10, 600), default=60.0, help="interval of checkpoints")
    parser.add_argument("--autoscaler-jar", type=Path, help="flink-autoscaler-standalone, for its own process")
    parser.add_argument("--cpu-max", type=number(0, 1), default=0.70, help="share of all processors; above: discarded")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--document", type=Path, default=DOCUMENT, help="the page whose tables are written")
    parser.add_argument("--tables-only", action="store_true", help="write the tables of the runs that are there")
    args = parser.parse_args(argv)
    path = args.out / "nexmark_dynamics.json"
    try:
        if not args.tables_only:
            if args.autoscaler_jar is None and set(args.policies) & set(AUTOSCALERS):
                raise UsageError("the autoscaler's own process needs --autoscaler-jar")
            with hold_folder(args.out, "make nexmark", ".nexmark.lock"):
                run = _measure(args)
                if run["cpu_share"] > args.cpu_max:
                    write_json(args.out / "nexmark_dynamics_discarded.json", run)
                    print(f"discarded: {run['cpu_share']:.0%} of all processors busy, which is no measurement")
                    return 1
                write_json(path, {"runs": [*_read_runs(path), run]})
        runs = _read_runs(path)
        short = [f"- {text}" for text in list_shortfalls(runs)] or ["- nothing"]
        tables = "\n".join([print_tables(runs), "", "### What falls short during a change", "", *short])
    except UsageError as error:
        print(f"nexmark: {error}", file=sys.stderr)
        return EXIT_USAGE
    except FlinkError as error:
        print(f"tidewise: nexmark failed: {error}", file=sys.stderr)
        return 1
    print(tables)
    write_text(args.document, put_between_marks(args.document.read_text(encoding="utf-8"), MARKS, tables))
    print(f"written: {path} and {args.document}")
    return 0


def _measure(args: Any) -> Mapping[str, Any]:
    schedule, folder = make_schedule(args.minutes), (args.out / "nexmark_dynamics").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    meter = CpuMeter()
    conditions = Conditions(args.jobs, schedule, args.checkpoint_every_s, args.autoscaler_jar)
    recorded = run_side_by_side(folder, args.policies, conditions)
    busy = meter.in_all()
    series = {policy: {job: one.to_json() for job, one in jobs.items()} for policy, jobs in recorded.items()}
    write_json(folder / "series.json", series)
    print(f"all processors were {busy:.0%} busy on average")
    return {
        "minutes": args.minutes,
        "checkpoint_every_s": args.checkpoint_every_s,
        "cpu_share": busy,
        "outcomes": {
            policy: {job: [outcome.to_json() for outcome in judge_events(one, schedule)] for job, one in jobs.items()}
            for policy, jobs in recorded.items()
        },
    }


def _read_runs(path: Path) -> list[Mapping[str, Any]]:
    return list(json.loads(path.read_text(encoding="utf-8"))["runs"]) if path.is_file() else []
