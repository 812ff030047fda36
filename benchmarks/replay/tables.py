"""``python -m benchmarks.replay.tables``: tables of single questions as one page, ``docs/replay/tables.md``.

The figures are CSV files in ``benchmarks/replay/published``, with the command that made them in its ``index.toml``.
"""

from __future__ import annotations

import csv
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.live.publish import read_simulator_error
from cli.arguments import CommandParser
from include.atomic_write import write_text
from include.settings import PROJECT

PUBLISHED = Path(__file__).parent / "published"
PAGE = PROJECT / "docs" / "replay" / "tables.md"
_HEADER = """# Further tables of the replay

Written by `python -m benchmarks.replay.tables` from the CSV files in `benchmarks/replay/published`.
[docs/replay.md](../replay.md) says what was compared and what follows from it.
"""


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
    parts = [_HEADER, f"{read_simulator_error()}\n"]
    for name, entry in index.items():
        table = format_table(read_cells(published / f"{name}.csv"))
        parts.append(f"## {entry['title']}\n\n{entry['note']}\n\n```\n{entry['command']}\n```\n\n{table}\n")
    return "\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page."""
    CommandParser(prog="replay.tables", description=__doc__).parse_args(argv)
    write_text(PAGE, format_page())
    print(f"written: {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
