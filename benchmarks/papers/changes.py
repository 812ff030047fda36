"""``python -m benchmarks.papers.changes --base COMMIT``: cells of the papers whose verdict is another than at a commit.

Both sides are read from the pages of benchmarks/papers/results, at the commit and as they are; no experiment is run.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.papers.__main__ import PAGES
from benchmarks.papers.document import NAMES
from benchmarks.papers.verdicts import Verdict
from cli.arguments import CommandParser
from include.atomic_write import write_text
from include.settings import PROJECT

PAGE = "changes.md"
_COLUMN = re.compile(r"(?<!\\)\|")
_HEAD = """# Verdicts that changed

<!-- Written by `python -m benchmarks.papers.changes`; run it again. -->

The cells of the [papers' pages](papers.md) as they are, beside those of commit {base} of {day}. A cell is known by its
table, row and column: one whose table or row was renamed is `gone` there and `new` here.
"""

CellKey = tuple[str, str, str, int]
"""Table, row, column, and a number that tells cells of one name apart, by their order."""


@dataclass(frozen=True, slots=True)
class PageCell:
    """What a page says of a cell.

    Attributes:
        ours: the figure with its spread.
        verdict: by its words, which an earlier commit may have named otherwise.
        reason: of the verdict; may be empty.
    """

    ours: str
    verdict: str
    reason: str


def read_cells(page: str) -> dict[CellKey, PageCell]:
    """Return the cells of a paper's page, in its order."""
    result: dict[CellKey, PageCell] = {}
    table, known = "", Counter[tuple[str, str, str]]()
    for line in page.splitlines():
        if line.startswith("## "):
            table = line.removeprefix("## ")
        columns = [text.strip() for text in _COLUMN.split(line)[1:-1]]
        if len(columns) != 6 or columns[0] == "row" or not columns[0].strip("-"):
            continue
        row, column, _, ours, _, judged = columns
        verdict, _, reason = judged.partition(": ")
        known[table, row, column] += 1
        result[table, row, column, known[table, row, column]] = PageCell(ours, verdict.strip("*"), reason)
    return result


def format_changes(name: str, before: Mapping[CellKey, PageCell], after: Mapping[CellKey, PageCell]) -> Iterator[str]:
    """Yield the lines of one paper: how many cells have each verdict, then each cell whose verdict is another."""
    counts = [Counter(cell.verdict for cell in side.values()) for side in (before, after)]
    order = [*Verdict, *sorted(set(counts[0]) - set(Verdict))]
    yield from (f"## {name}", "", "| verdict | before | after |", "|---|---|---|")
    yield from (f"| {one} | {counts[0][one]} | {counts[1][one]} |" for one in order if counts[0][one] or counts[1][one])
    keys = [key for key in after if key in before and before[key].verdict != after[key].verdict]
    new, gone = ([key for key in one if key not in other] for one, other in ((after, before), (before, after)))
    yield from ("", f"{len(keys)} cells have another verdict, {len(new)} are new, {len(gone)} are gone.", "")
    if not (keys or new or gone):
        return
    yield from ("| table | row | column | before | after | reason |", "|---|---|---|---|---|---|")
    for key in [*keys, *new, *gone]:
        sides = (_show(before.get(key), "new"), _show(after.get(key), "gone"))
        yield f"| {' | '.join([*key[:3], *sides, (after.get(key) or before[key]).reason or '-'])} |"
    yield ""


def _show(cell: PageCell | None, absent: str) -> str:
    return absent if cell is None else f"{cell.verdict} ({cell.ours})"


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page."""
    parser = CommandParser(prog="changes", description=__doc__)
    parser.add_argument("--base", required=True, help="commit whose pages are compared with those of the working tree")
    parser.add_argument("--pages", type=Path, default=PROJECT / PAGES, help=f"folder of the pages (default: {PAGES})")
    options = parser.parse_args(argv)
    about = _git(options.pages, "show", "--no-patch", "--format=%h of %cs", f"{options.base}^{{commit}}", "--")
    if about.returncode:
        parser.error(f"git knows no commit {options.base!r}")
    base, _, day = about.stdout.strip().partition(" of ")
    lines = [_HEAD.format(base=base, day=day)]
    for paper, name in NAMES.items():
        before = _git(options.pages, "show", f"{options.base}:./{paper}.md").stdout  # empty where there was none
        after = (options.pages / f"{paper}.md").read_text(encoding="utf-8")
        lines += format_changes(name, read_cells(before), read_cells(after))
    write_text(options.pages / PAGE, "\n".join(lines).rstrip() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
