"""``python -m benchmarks.replay.bound_table``: what every policy costs over the bound, per trace and seed.

It replays tuning traces, adds the rows to those that are published, and writes the tables of docs/replay.md from them:
a run of one policy or one trace replaces its own rows and leaves the others.  ``--rows`` publishes rows that
``python -m benchmarks.replay`` has written, ``--publish`` writes the tables alone.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.arguments import readable_file
from benchmarks.replay.cost_rows import merge_costs, read_costs, write_costs
from benchmarks.replay.cost_summary import describe_bound, list_best_of, list_by_trace, split_jobs, summarise
from benchmarks.replay.cpu_estimate import describe_estimate
from benchmarks.replay.replay_candidates import BOUND, check_names
from benchmarks.replay.replay_cases import FLOOR, ReplayCase, Row, replay_in_processes
from benchmarks.replay.replay_traces import Trace
from benchmarks.replay.split import TRACES, UNSEEN, Piece, read_piece, read_split
from benchmarks.replay.synthetic_loads import SYNTHETIC
from benchmarks.replay.tables import PUBLISHED, format_table
from cli.arguments import CommandParser, number, whole_number
from cli.workers import exit_on_sigterm
from include.atomic_write import write_text
from include.settings import PROJECT
from lab.replay.conditions import Conditions
from tools.marked_page import put_between_marks

PAGE = PROJECT / "docs" / "replay.md"
BEGIN, END = "<!-- over the bound: written by benchmarks.replay.bound_table -->\n", "<!-- end of over the bound -->"
COSTS = "over_the_bound_costs.csv"
POLICIES = ("programme", "planner", "controller_alone", "flink_autoscaler_tuned", FLOOR, BOUND)
FIRST_SEED = 100  # of tuning; those of the test are below
_OURS = ("planner", "controller_alone")


def list_traces() -> tuple[str, ...]:
    """Return the tuning traces, the synthetic ones last."""
    return (*read_split("tuning").traces, *SYNTHETIC)


def replay_traces(traces: Sequence[Trace], policies: tuple[str, ...], seeds: int, processes: int) -> list[Row]:
    """Replay traces with ``wordcount``.

    Args:
        traces: to replay.
        policies: candidates.
        seeds: how many.
        processes: at most so many.
    """
    print(describe_estimate(policies, seeds, sum(trace.days for trace in traces)), flush=True)
    rows: list[Row] = []
    for trace in traces:
        began = time.monotonic()
        case = ReplayCase(trace, "wordcount", policies, tuple(range(FIRST_SEED, FIRST_SEED + seeds)), Conditions())
        rows += replay_in_processes(case, processes).rows
        print(f"{trace.name}: {len(policies)} candidates, {time.monotonic() - began:.0f} s", flush=True)
    return rows


def publish(rows: Sequence[Row], page: Path = PAGE, published: Path = PUBLISHED) -> None:
    """Add rows to the published ones, and write the tables from all of them.

    Args:
        rows: of a replay; a row of the same trace, job, policy, seed and segment is replaced.
        page: with the marks.
        published: folder of the CSV file.
    """
    path = published / COSTS
    before = read_costs([path]) if path.exists() else []
    write_costs(merge_costs(before, rows), path)
    parts = [describe_job(own) for own in split_jobs(read_costs([path]))]
    write_text(page, put_between_marks(page.read_text(encoding="utf-8"), (BEGIN, END), "\n".join(parts)))


def describe_job(rows: Sequence[Row]) -> str:
    """Return the tables of one job: costs over the bound by trace, over the better of our own two, and over traces."""
    seeds = ", ".join(str(seed) for seed in sorted({int(str(row["seed"])) for row in rows}))
    count = len({row["trace"] for row in rows})
    complete = select_complete(rows)
    traces = len({(row["trace"], row["seed"]) for row in complete})
    first = f"`{rows[0]['job']}`, {count} tuning traces, seed {seeds}, costs after the first day over the bound. "
    tables = [
        first + describe_bound(rows),
        format_table(transpose(list_by_trace(rows))),
        f"`programme` over the cheaper of {' and '.join(f'`{name}`' for name in _OURS)}, by trace and seed:",
        format_table(list_best_of(rows, "programme", _OURS)),
        f"Over the {traces} runs of a trace and seed that every policy has; bold: the planner, and what is cheaper.",
        format_table(summarise(complete)),
    ]
    return "\n\n".join(tables) + "\n"


def select_complete(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the traces and seeds on which every policy was run."""
    policies = {row["policy"] for row in rows}
    run: dict[tuple[object, object], set[object]] = {}
    for row in rows:
        run.setdefault((row["trace"], row["seed"]), set()).add(row["policy"])
    return [row for row in rows if run[row["trace"], row["seed"]] == policies]


def transpose(cells: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return a table whose rows are the columns; traces are more than policies."""
    turned = [list(column) for column in zip(*cells, strict=True)]
    turned[0][0] = "trace"
    return turned


def main(argv: Sequence[str] | None = None) -> int:
    """Run and publish, or publish."""
    parser = CommandParser(prog="replay.bound_table", description=__doc__)
    parser.add_argument("--rows", type=readable_file, nargs="+", metavar="JSON", help="publish these rows")
    parser.add_argument("--publish", action="store_true", help="write the tables from the published rows alone")
    parser.add_argument("--policy", nargs="+", default=list(POLICIES), metavar="NAME", help=f"default: {POLICIES}")
    parser.add_argument(
        "--trace", nargs="+", default=list(list_traces()), metavar="NAME", help="default: all of tuning"
    )
    parser.add_argument("--seeds", type=whole_number(1), default=1, metavar="N", help="default: 1, which is 100")
    parser.add_argument("--days", type=number(1, 36_600, above=True), default=8.0, metavar="N", help="default: 8")
    parser.add_argument("--unseen", type=Path, default=UNSEEN, metavar="DIR", help="traces of replay.unseen")
    parser.add_argument("-j", "--jobs", type=whole_number(1), default=2, metavar="N", help="processes (default: 2)")
    options = parser.parse_args(argv)
    exit_on_sigterm()
    unknown = sorted(set(options.trace) - set(list_traces()))
    if unknown:
        parser.error(f"{unknown} are no tuning traces; those are {', '.join(list_traces())}")
    try:
        check_names(options.policy)
    except ValueError as error:
        parser.error(str(error))
    rows: list[Row] = []
    if options.rows is not None:
        rows = [row for path in options.rows for row in json.loads(path.read_text())]
    elif not options.publish:
        folders = (TRACES, options.unseen)
        traces = [read_piece(Piece(name, 0, 0), folders).cut_days(options.days) for name in options.trace]
        rows = replay_traces(traces, tuple(options.policy), options.seeds, options.jobs)
    publish(rows)
    print(f"written: {PUBLISHED / COSTS} and {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
