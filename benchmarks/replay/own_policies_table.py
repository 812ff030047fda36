"""``python -m benchmarks.replay.own_policies_table``: Tidewise's own policies beside each other on the test traces.

It replays the first days of the test pieces of ``split.toml``, seed by seed, and publishes a table over them and one of
the default's cost over the cheaper of the other two.  ``--rows`` publishes rows that were written before.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.arguments import readable_file
from benchmarks.replay.best_form_table import print_tables, publish_jobs, read_rows, run_side
from benchmarks.replay.cost_summary import list_best_of
from benchmarks.replay.replay_cases import FLOOR, Row
from benchmarks.replay.split import UNSEEN, read_split
from benchmarks.replay.tables import PUBLISHED, format_table
from cli.arguments import CommandParser, number, whole_number
from cli.workers import exit_on_sigterm
from include.settings import PROJECT

DEFAULT, OTHERS = "programme", ("planner", "controller_alone")
PAGE = PROJECT / "docs" / "replay.md"
BEGIN, END = "<!-- own policies: written by benchmarks.replay.own_policies_table -->\n", "<!-- end of own policies -->"


def describe_run(rows: Sequence[Row]) -> str:
    """Return what was run with one job, and what the default costs over the cheaper of the others."""
    traces = sorted({str(row["trace"]) for row in rows})
    seeds = sorted({int(str(row["seed"])) for row in rows})
    days = max(float(str(row["days"])) for row in rows)
    return (
        f"`{rows[0]['job']}`, test traces {', '.join(traces)}; the first {days:g} days without the first one; "
        f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}. `{DEFAULT}` over the cheaper of "
        f"{' and '.join(f'`{name}`' for name in OTHERS)}:\n\n{format_table(list_best_of(rows, DEFAULT, OTHERS))}\n\n"
        "Over all of them; bold: the planner, and what is cheaper."
    )


def publish(rows: Sequence[Row]) -> None:
    """Write the CSV files, and the section of docs/replay.md."""
    publish_jobs(rows, "own_policies", describe_run, (BEGIN, END), page=PAGE, published=PUBLISHED)


def main(argv: Sequence[str] | None = None) -> int:
    """Run and publish, or publish."""
    parser = CommandParser(prog="replay.own_policies_table", description=__doc__)
    parser.add_argument("--rows", type=readable_file, nargs="+", metavar="JSON", help="publish these rows")
    parser.add_argument("--seeds", type=whole_number(1), metavar="N", help="only the first N seeds of the split")
    parser.add_argument("--days", type=number(1, 36_600, above=True), default=8.0, metavar="N", help="default: 8")
    parser.add_argument("--unseen", type=Path, default=UNSEEN, metavar="DIR", help="traces of replay.unseen")
    parser.add_argument("--json", type=Path, default=Path("out/own_policies.json"), metavar="OUT", help="for the rows")
    parser.add_argument("-j", "--jobs", type=whole_number(1), default=2, metavar="N", help="processes (default: 2)")
    options = parser.parse_args(argv)
    exit_on_sigterm()
    if options.rows is not None:
        rows = read_rows(options.rows)
    else:
        seeds = read_split("test").seeds[: options.seeds]
        rows = run_side(["wordcount"], (DEFAULT, *OTHERS, FLOOR), seeds, vars(options))
    publish(rows)
    print_tables(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
