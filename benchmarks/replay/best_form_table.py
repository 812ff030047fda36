"""``python -m benchmarks.replay.best_form_table``: rivals in their own and in their best form on the test traces.

It replays the test pieces of ``split.toml``, writes the rows, and publishes a table per job: a row per candidate with
its cost over the clairvoyant's and over the planner's after the first day, the latter with a paired interval over the
traces and seeds.  ``--rows`` publishes rows that were written before.
"""

from __future__ import annotations

import csv
import itertools
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.arguments import readable_file
from benchmarks.replay.best_forms import read_forms
from benchmarks.replay.cost_rows import compare_costs, read_costs, write_costs
from benchmarks.replay.cost_summary import PLANNER, describe_bound, split_jobs, summarise
from benchmarks.replay.cpu_estimate import describe_estimate
from benchmarks.replay.replay_candidates import BOUND
from benchmarks.replay.replay_cases import FLOOR, ReplayCase, Row, replay_in_processes
from benchmarks.replay.replay_tables import write
from benchmarks.replay.rivals.rival_catalogue import BEST_CONSTANT, FORMED
from benchmarks.replay.split import TRACES, UNSEEN, read_piece, read_split
from benchmarks.replay.tables import PUBLISHED, format_table
from cli.arguments import CommandParser, number, whole_number
from cli.workers import exit_on_sigterm
from include.atomic_write import write_text
from include.settings import PROJECT
from lab.replay.conditions import Conditions
from tools.marked_page import put_between_marks

JOBS = ("wordcount", "eight")
PAGE = PROJECT / "docs" / "replay.md"
BEGIN, END = "<!-- best forms: written by benchmarks.replay.best_form_table -->\n", "<!-- end of best forms -->"


def list_policies(forms: Sequence[str]) -> tuple[str, ...]:
    """Return every candidate with a best form, in both forms, and the references."""
    own = [name.removesuffix(FORMED) for name in forms]
    return (*own, *forms, "flink_autoscaler_tuned", BEST_CONSTANT, "static_max", BOUND, FLOOR)


def publish(rows: Sequence[Row]) -> None:
    """Write the CSV files of the published tables, and the section of docs/replay.md."""
    publish_jobs(rows, "best_forms", describe_run, (BEGIN, END), page=PAGE, published=PUBLISHED)


def publish_jobs(
    rows: Sequence[Row],
    name: str,
    describe: Callable[[Sequence[Row]], str],
    marks: tuple[str, str],
    *,
    page: Path,
    published: Path,
) -> None:
    """Write the costs and the table over them as CSV files of each job, and the tables between two marks of a page.

    Args:
        rows: of a replay.
        name: how the CSV files begin.
        describe: says what was run with one job.
        marks: before and after the tables.
        page: to write to.
        published: folder of the CSV files.
    """
    parts = []
    for of_job in split_jobs(rows):
        costs = published / f"{name}_{of_job[0]['job']}_costs.csv"
        write_costs(of_job, costs)
        own = read_costs([costs])
        cells = summarise(own)
        with (published / f"{name}_{own[0]['job']}.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(cells)
        parts.append(f"{describe(own)} {describe_bound(own)}".rstrip() + f"\n\n{format_table(cells)}\n")
    write_text(page, put_between_marks(page.read_text(encoding="utf-8"), marks, "\n".join(parts)))


def describe_run(rows: Sequence[Row]) -> str:
    """Return what was run with one job, as a sentence."""
    traces = sorted({str(row["trace"]) for row in rows})
    seeds = len({row["seed"] for row in rows})
    return (
        f"`{rows[0]['job']}`, test traces {', '.join(traces)}; {seeds} {'seed' if seeds == 1 else 'seeds'}; "
        "costs after the first day. Bold: the planner, and rivals that are cheaper."
    )


def run_side(
    jobs: Sequence[str], policies: tuple[str, ...], seeds: tuple[int, ...], options: Mapping[str, object]
) -> list[Row]:
    """Replay the pieces with each job, one after the other; rows are written after each.

    Args:
        jobs: names.
        policies: candidates.
        seeds: of each.
        options: of the command line: ``unseen``, ``days``, ``jobs``, ``json``.
    """
    rows: list[Row] = []
    forms = read_forms()
    folders, days = (TRACES, Path(str(options["unseen"]))), options["days"]
    cut = float(str(days)) if days is not None else None
    traces = [read_piece(piece, folders).cut_days(cut) for piece in read_split("test").pieces]
    of_all = len(jobs) * sum(trace.days for trace in traces)
    print(describe_estimate(policies, len(seeds), of_all), flush=True)
    for job, trace in itertools.product(jobs, traces):
        began = time.monotonic()
        case = ReplayCase(trace, job, policies, seeds, Conditions(), forms=forms)
        rows += replay_in_processes(case, int(str(options["jobs"]))).rows
        write(rows, Path(str(options["json"])))
        print(f"{job}, {trace.name}: {len(policies)} candidates, {time.monotonic() - began:.0f} s", flush=True)
    return rows


def read_rows(paths: Sequence[Path]) -> list[Row]:
    """Return the rows that replays have written."""
    return [row for path in paths for row in json.loads(path.read_text())]


def print_tables(rows: Sequence[Row]) -> None:
    """Print the table over traces of each job."""
    for cells in itertools.chain.from_iterable(map(summarise, split_jobs(compare_costs(rows)))):
        print(" | ".join(cells))


def main(argv: Sequence[str] | None = None) -> int:
    """Run and publish, or publish."""
    parser = CommandParser(prog="replay.best_form_table", description=__doc__)
    parser.add_argument("--rows", type=readable_file, nargs="+", metavar="JSON", help="publish these rows")
    parser.add_argument("--policy", nargs="+", metavar="NAME", help="default: every policy with a best form, in both")
    parser.add_argument("--job", nargs="+", default=list(JOBS), metavar="NAME", help=f"default: {' '.join(JOBS)}")
    parser.add_argument("--seeds", type=whole_number(1), metavar="N", help="only the first N seeds of the split")
    parser.add_argument("--days", type=number(0, 36_600, above=True), metavar="N", help="only so many days of a piece")
    parser.add_argument("--unseen", type=Path, default=UNSEEN, metavar="DIR", help="traces of replay.unseen")
    parser.add_argument("--json", type=Path, default=Path("out/best_forms.json"), metavar="OUT", help="for the rows")
    parser.add_argument("-j", "--jobs", type=whole_number(1), default=2, metavar="N", help="processes (default: 2)")
    options = parser.parse_args(argv)
    exit_on_sigterm()
    if options.rows is not None:
        rows = read_rows(options.rows)
    else:
        policies = tuple(options.policy or list_policies(tuple(read_forms())))
        needed = tuple(dict.fromkeys((*policies, PLANNER, BOUND, FLOOR)))
        rows = run_side(options.job, needed, read_split("test").seeds[: options.seeds], vars(options))
    publish(rows)
    print_tables(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
