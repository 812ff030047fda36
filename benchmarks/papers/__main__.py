"""``make papers``: the papers' own experiments in simulation, ours beside the published figures.

Writes benchmarks/papers/results/papers.md and a page per paper: every cell with its verdict.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.papers.cells import Cell
from benchmarks.papers.printing import read, tables_of, write
from benchmarks.papers.publish import publish
from benchmarks.papers.registry import RegistryError, read_registry
from cli.arguments import CommandParser, UsageError, require_writable
from include.settings import PROJECT

PAPERS = ("ds2", "conttune", "dragster", "mdp_rl", "phoebe")
CHOICE = "PAPER"
RESULTS = "papers.json"
PAGES = "benchmarks/papers/results"
WIDTH = 140  # where the output is no terminal


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiments of the chosen papers one after the other; what is done is printed and written after each."""
    parser = CommandParser(prog="papers", description=__doc__)
    chosen_outside = os.environ.get(CHOICE, "")
    parser.add_argument(
        "--paper",
        default=chosen_outside,
        help=f"one of {', '.join(PAPERS)}, or several with commas between (default: ${CHOICE}, else all)",
    )
    parser.add_argument("--live", action="store_true", help="one experiment per paper on a real Flink cluster")
    parser.add_argument(
        "--results", type=Path, help=f"judge the figures of an earlier run, its {RESULTS}, in place of running"
    )
    parser.add_argument("--out", type=Path, default=Path("out"), help=f"folder of {RESULTS} and the plots")
    parser.add_argument("--pages", type=Path, default=PROJECT / PAGES, help=f"folder of papers.md (default: {PAGES})")
    options = parser.parse_args(argv)
    papers = [name.strip() for name in options.paper.split(",") if name.strip()] or list(PAPERS)
    unknown = sorted(set(papers) - set(PAPERS))
    if unknown:
        parser.error(f"no such paper: {', '.join(unknown)}; choose from {', '.join(PAPERS)}")
    try:
        require_writable(options.out)
        require_writable(options.pages)
        for paper in papers:  # a mistake in one shows now, not after the experiments
            read_registry(paper)
        earlier = read(options.results) if options.results else None
    except (UsageError, RegistryError, OSError, ValueError) as error:
        parser.error(str(error))
    os.environ.setdefault("MPLBACKEND", "Agg")  # plots go to files, whatever display there is
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    if options.live:
        from benchmarks.papers.live.table import run_live

        options.out.mkdir(parents=True, exist_ok=True)
        run_live(options.out, console)
        return 0
    if earlier is None:
        began, before = time.monotonic(), _plots(options.out)
        cells = run(papers, options.out, console)
        console.print(f"written: {options.out / RESULTS}, {len(cells)} figures in {time.monotonic() - began:.0f} s")
        for plot, _ in sorted(_plots(options.out) - before):  # the folder may hold others from before
            console.print(f"plot: {plot}")
    else:
        cells = earlier
    absent = publish(papers, cells, options.pages, options.out)
    console.print(f"written: {options.pages / 'papers.md'}")
    for name in absent:
        console.print(f"no figure came out for {name}", style="bold", markup=False)
    return 1 if absent else 0


def run(papers: Sequence[str], out: Path, console: Console) -> list[Cell]:
    """Run the experiments of some papers, showing which one is under way, and print the tables of each."""
    cells: list[Cell] = []
    columns = (
        SpinnerColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as progress, threadpool_limits(limits=1):
        task = progress.add_task("", total=len(papers))
        began = time.monotonic()

        def tell(message: str) -> None:
            progress.update(task, description=message)
            console.print(Text(f"{time.monotonic() - began:5.0f} s  {message}", style="dim"))

        for paper in papers:
            progress.update(task, description=paper)
            result = experiments_of(paper)(tell, out)
            cells += result
            write(cells, out / RESULTS)
            console.print("", *tables_of(result), "", sep="\n")
            progress.advance(task)
    return cells


def experiments_of(paper: str) -> Callable[[Callable[[str], None], Path], list[Cell]]:
    """Return the entry of a paper's experiments; a paper that is not chosen is not imported."""
    tables: Callable[[Callable[[str], None], Path], list[Cell]]
    tables = importlib.import_module(f"benchmarks.papers.{paper}").tables
    return tables


def _plots(out: Path) -> set[tuple[Path, int]]:
    """Return the plots in a folder, each with when it was written."""
    return {(plot, plot.stat().st_mtime_ns) for plot in out.glob("*.png")}


if __name__ == "__main__":
    sys.exit(main())
