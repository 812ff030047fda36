"""Reconfigurations per rate change and cores on ContTune's schedule (20 rates x 6 permutations), rates announced."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.announced.run import SETTINGS, Announced, Course, least_cores, reactive, run_planner
from benchmarks.papers.conttune.conttune_experiments import DS2, Method
from benchmarks.papers.conttune.conttune_published import QUERIES
from benchmarks.papers.conttune.queries import query
from benchmarks.papers.conttune.query_runs import DATA_S, RATES
from cli.arguments import CommandParser, UsageError, require_writable_file, whole_number
from include.atomic_write import write_text
from include.settings import Planner

OFF = 0.1  # an announced rate is up to this share off
WIDTH = 120  # where the output is no terminal
Row = dict[str, Any]
REACTIVE = {"ContTune, alpha 3": Method(), "ContTune, alpha 0": Method(alpha=0), "DS2": DS2}
_COLUMNS = {
    "reconfigurations_per_change": ("reconf./change", "{:.3f}"),
    "first_ten": ("first ten", "{:.2f}"),
    "second_ten": ("second ten", "{:.2f}"),
    "cores": ("mean cores", "{:.2f}"),
    "cores_vs_alpha_3": ("/ alpha 3", "{:.3f}"),
    "cores_second_ten": ("cores, second ten", "{:.2f}"),
    "sustained": ("sustained", "{:.1%}"),
}


def row_of(name: str, candidate: str, course: Course) -> Row:
    """Return the figures of a candidate policy; means over seeds and permutations."""
    counts, cores, half = course.reconfigurations, course.core_s / DATA_S, RATES // 2
    return {
        "query": name,
        "candidate": candidate,
        "reconfigurations_per_change": float(counts.mean()),
        "first_ten": float(counts[..., :half].mean()),
        "second_ten": float(counts[..., half:].mean()),
        "cores": float(cores.mean()),
        "cores_second_ten": float(cores[..., half:].mean()),
        "sustained": float(course.sustained.mean()),
    }


def rows_of(name: str, settings: Planner, seeds: int, progress: Callable[[str], None]) -> list[Row]:
    """Return the rows of a query, the first of ContTune with alpha 3."""
    job, rows = query(name), []
    for candidate, method in REACTIVE.items():
        progress(f"{name}: {candidate}")
        rows.append(row_of(name, candidate, reactive(job, method, seeds)))
    for candidate, error in (("planner, exact", 0.0), (f"planner, {OFF:.0%} off", OFF)):
        progress(f"{name}: {candidate}")
        rows.append(row_of(name, candidate, run_planner(job, Announced(error, settings), seeds)))
    least = least_cores(job, seeds)
    known = Course(np.zeros(least.shape, np.int64), least * DATA_S, np.ones(least.shape, bool))
    rows.append({**row_of(name, "fewest that sustain", known), **dict.fromkeys(list(_COLUMNS)[:3])})
    return [{**row, "cores_vs_alpha_3": row["cores"] / rows[0]["cores"]} for row in rows]


def table_of(rows: Sequence[Row]) -> Table:
    """Return the table of a query."""
    table = Table(title=rows[0]["query"], title_justify="left")
    table.add_column("candidate", no_wrap=True)
    for heading, _ in _COLUMNS.values():
        table.add_column(heading, justify="right")
    for row in rows:
        cells = [form.format(row[key]) if row[key] is not None else "-" for key, (_, form) in _COLUMNS.items()]
        table.add_row(row["candidate"], *cells)
    return table


def main(argv: Sequence[str] | None = None) -> int:
    """Run the queries one after the other; what is done is printed after each."""
    parser = CommandParser(prog="announced", description=__doc__)
    parser.add_argument("--query", nargs="+", choices=QUERIES, default=list(QUERIES), help="default: all six")
    parser.add_argument(
        "--seeds", type=whole_number(1), default=1, metavar="N", help="times six permutations (default: 1)"
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="where the rows go")
    for name in ("rescale_weight", "late_weight", "overload_tolerance"):
        option, default = f"--{name.replace('_', '-')}", SETTINGS[f"costs.{name}"]
        parser.add_argument(option, type=float, default=default, metavar="X", help=f"default: {default}")
    options = parser.parse_args(argv)
    chosen = {name: getattr(options, name.partition(".")[2], value) for name, value in SETTINGS.items()}
    try:
        settings = Planner.model_validate(Planner().with_values(chosen).model_dump())
        if options.json:
            require_writable_file(options.json, "--json")
    except ValidationError as error:
        parser.error("; ".join(f"{fault['loc'][-1]}: {fault['msg']}, not {fault['input']}" for fault in error.errors()))
    except UsageError as error:
        parser.error(str(error))
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    reported = ", ".join(f"{name} = {value:g}" for name, value in chosen.items())
    console.print(f"planner: {reported}; all else as in the defaults", highlight=False)
    rows: list[Row] = []
    with threadpool_limits(limits=1):
        for name in options.query:
            with console.status(name) as status:
                result = rows_of(name, settings, options.seeds, status.update)
            console.print(table_of(result))
            rows += result
            if options.json:
                write_text(options.json, json.dumps({"settings": chosen, "rows": rows}, indent=1))
    if options.json:
        console.print(f"written: {options.json}, {len(rows)} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
