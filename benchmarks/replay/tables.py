"""``python -m benchmarks.replay.tables``: the published tables of the replay as one page, ``docs/replay/tables.md``.

The figures are CSV files in ``benchmarks/replay/published``, with the command that made them in its ``index.toml``.
``--rows out/replay.json --name NAME`` makes such files from the rows of a new replay: NAME_last_third.csv and
NAME_whole_trace.csv.
"""

from __future__ import annotations

import csv
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.arguments import readable_file
from benchmarks.replay.replay_cases import Row
from benchmarks.replay.replay_tables import compute_mean
from cli.arguments import CommandParser
from include.atomic_write import write_text
from include.settings import PROJECT

PUBLISHED = Path(__file__).parent / "published"
PAGE = PROJECT / "docs" / "replay" / "tables.md"
FILES = {"last_third": "last_third", "all": "whole_trace"}
"""Segment of the replay's rows -> end of the file's name."""
_HEADER = """# Tables of the replay

Written by `python -m benchmarks.replay.tables` from the CSV files in `benchmarks/replay/published`.
[docs/replay.md](../replay.md) says what was compared and what follows from it. Costs are shares of
the clairvoyant's cost.
"""


def summarise(rows: Sequence[Row], segment: str) -> list[list[str]]:
    """Return a table, headings first: a policy's cost over the clairvoyant's per trace and job, the cheapest first.

    With more traces and jobs than policies, each of them is a row.

    Args:
        rows: of a replay's JSON file.
        segment: of ``lab.replay.scores.SEGMENTS``.
    """
    retained = [row for row in rows if row["segment"] == segment]
    pairs = sorted({(str(row["trace"]), str(row["job"])) for row in retained})
    result: list[tuple[float, list[str]]] = []
    for policy in sorted({str(row["policy"]) for row in retained}):
        own = [row for row in retained if row["policy"] == policy]
        costs = [
            compute_mean([row for row in own if (row["trace"], row["job"]) == pair], "cost_vs_clairvoyant")
            for pair in pairs
        ]
        rates = [f"{compute_mean(own, column):.1f}" for column in ("rescales_per_day", "late_minutes_per_day")]
        average = float(np.mean(costs))
        result.append((average, [policy, *(f"{cost:.3f}" for cost in costs), f"{average:.3f}", *rates]))
    headings = ["policy", *(f"{job}: {trace}" for trace, job in pairs), "mean", "rescales / day", "late min / day"]
    cells = [headings, *(cells for _, cells in sorted(result))]
    return transpose(cells) if len(pairs) > len(result) else cells


def transpose(cells: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return a table with a row per trace and job, for more of them than policies."""
    turned = [list(row) for row in zip(*cells, strict=True)]
    return [["trace and job", *turned[0][1:]], *turned[1:]]


def format_table(cells: Sequence[Sequence[str]]) -> str:
    """Return rows, headings first, as a Markdown table."""
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(cells[0]), *lines[1:]])


def read_cells(path: Path) -> list[list[str]]:
    """Return the cells of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.reader(file))


def format_page(published: Path = PUBLISHED) -> str:
    """Return the page with all published tables."""
    index: Mapping[str, Mapping[str, str]] = tomllib.loads((published / "index.toml").read_text())
    parts = [_HEADER]
    for name, entry in index.items():
        table = format_table(read_cells(published / f"{name}.csv"))
        parts.append(f"## {entry['title']}\n\n{entry['note']}\n\n```\n{entry['command']}\n```\n\n{table}\n")
    return "\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or CSV files from the rows of a replay."""
    parser = CommandParser(prog="replay.tables", description=__doc__)
    parser.add_argument("--rows", type=readable_file, metavar="JSON", help="rows that `make replay` has written")
    parser.add_argument("--name", help="how the CSV files of --rows begin")
    options = parser.parse_args(argv)
    if (options.rows is None) != (options.name is None):
        parser.error("--rows and --name go together")
    if options.rows is None:
        write_text(PAGE, format_page())
        print(f"written: {PAGE}")
        return 0
    rows: list[Row] = json.loads(options.rows.read_text())
    for segment, ending in FILES.items():
        path = PUBLISHED / f"{options.name}_{ending}.csv"
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(summarise(rows, segment))
        print(f"written: {path}; name it in {PUBLISHED / 'index.toml'} to publish it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
