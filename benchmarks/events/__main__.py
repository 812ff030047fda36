"""``python -m benchmarks.events``: an event of 3x on tuning traces, with what people said of it and without."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.events.run import AROUND_H, Occasion, replay_occasion
from benchmarks.replay.split import TRACES, UNSEEN, Piece, read_piece, read_split
from cli.arguments import CommandParser, UsageError, require_writable_file, whole_number
from include.atomic_write import write_text
from include.utc import DAY_S, HOUR_S

FIRST_SEED = 100  # of tuning
DAYS = 5
TRACES_READ = ("dsp_taxi_5min", "dsp_alibaba_5min", "dsp_wiki_de_5min", "nab_nyc_taxi_30min")
POLICIES = ("programme", "planner")
WIDTH = 120  # where the output is no terminal


@dataclass(frozen=True, slots=True)
class Announcement:
    """What comes, and what people said of it; None where they said nothing."""

    title: str
    comes: float
    announced: float | None


CASES = (
    Announcement("3x comes, nothing was said", 3.0, None),
    Announcement("3x comes, 3x was said", 3.0, 3.0),
    Announcement("3x comes, 2x was said", 3.0, 2.0),
    Announcement("2x comes, 3x was said", 2.0, 3.0),
    Announcement("2x comes, nothing was said", 2.0, None),
    Announcement("nothing comes, 3x was said", 1.0, 3.0),
    Announcement("nothing comes, nothing was said", 1.0, None),
)
Row = dict[str, object]


def list_rows(trace_name: str, policies: Sequence[str], seeds: int, days: int) -> list[Row]:
    """Return a row per case, policy and seed of a trace: what the hours around the event took."""
    trace = read_piece(Piece(trace_name, 0, 0), (TRACES, UNSEEN)).cut_days(days)
    occasion, chosen = Occasion(day=days - 1), tuple(range(FIRST_SEED, FIRST_SEED + seeds))
    hours = occasion.hours + 2 * AROUND_H
    rows: list[Row] = []
    for case in CASES:
        scores = replay_occasion(trace, occasion, policies, chosen, comes=case.comes, announced=case.announced)
        for (policy, seed), score in scores.items():
            late = score.late_minutes_per_day * hours * HOUR_S / DAY_S
            row = {"trace": trace_name, **asdict(case), "policy": policy, "seed": seed, "cost": score.cost}
            rows.append(row | {"late_minutes": late, "slot_hours": score.slot_hours})
    return rows


def list_cells(rows: Sequence[Row], policies: Sequence[str]) -> list[list[str]]:
    """Return means over traces and seeds, a row per case."""
    result = []
    for case in CASES:
        cells = [case.title]
        for policy in policies:
            mine = [row for row in rows if row["title"] == case.title and row["policy"] == policy]
            means = [sum(float(str(row[key])) for row in mine) / len(mine) for key in _SHOWN]
            cells.append(" / ".join(f"{mean:.1f}" for mean in means))
        result.append(cells)
    return result


def build_table(rows: Sequence[Row], policies: Sequence[str]) -> Table:
    """Return the table that is printed."""
    table = Table(title=f"cost / late minutes / slot-hours of the event and {AROUND_H:g} h before and after it")
    table.add_column("case", no_wrap=True)
    for policy in policies:
        table.add_column(policy, justify="right")
    for cells in list_cells(rows, policies):
        table.add_row(*cells)
    return table


def format_csv(rows: Sequence[Row], policies: Sequence[str]) -> str:
    """Return the same as the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([["case", *policies], *list_cells(rows, policies)])
    return text.getvalue()


_SHOWN = ("cost", "late_minutes", "slot_hours")


def main(argv: Sequence[str] | None = None) -> int:
    """Replay the traces one after the other; the table of what is done is printed after each."""
    parser = CommandParser(prog="events", description=__doc__)
    known = [name for name in TRACES_READ if name in read_split("tuning").traces]
    parser.add_argument("--trace", nargs="+", choices=known, default=known, metavar="NAME", help=f"default: {known}")
    parser.add_argument("--policy", nargs="+", default=list(POLICIES), metavar="NAME", help=f"default: {POLICIES}")
    parser.add_argument("--seeds", type=whole_number(1), default=1, metavar="N", help="default: 1, which is 100")
    parser.add_argument("--days", type=whole_number(3), default=DAYS, metavar="N", help=f"the last has it ({DAYS})")
    parser.add_argument("--csv", type=Path, metavar="OUT", help="where the table goes")
    parser.add_argument("--json", type=Path, metavar="OUT", help="where the rows go")
    options = parser.parse_args(argv)
    try:
        for path, option in ((options.json, "--json"), (options.csv, "--csv")):
            if path is not None:
                require_writable_file(path, option)
    except UsageError as error:
        parser.error(str(error))
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    rows: list[Row] = []
    with threadpool_limits(limits=1):
        for name in options.trace:
            rows += list_rows(name, options.policy, options.seeds, options.days)
            console.print(f"up to {name}:", build_table(rows, options.policy))
            if options.json:
                write_text(options.json, json.dumps(rows, indent=1))
            if options.csv:
                write_text(options.csv, format_csv(rows, options.policy))
    return 0


if __name__ == "__main__":
    sys.exit(main())
