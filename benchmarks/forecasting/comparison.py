"""The forecast beside quantile LightGBM alone and MSTL with AutoETS, and how good it is after one season.

``python -m benchmarks.forecasting.comparison [--side tuning|test] [--methods NAME ...] [--page docs/models/tables.md]``

The traces are those of ``replay/split.toml``; those that are not shipped are written by ``benchmarks.replay.unseen``.
All methods forecast a day ahead from the same origins: every six hours of the last third, of the last 70 days of longer
traces.  A run keeps the rows of other traces and methods in its JSON file and writes the tables of all of them to
``out/forecasting.md``, and with ``--page`` between the marks of a page.  MSTL needs statsforecast, which the project
itself does not: ``pip install statsforecast==2.0.1``.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.forecasting.references import REFERENCES, MissingLibraryError
from benchmarks.forecasting.traces import OURS, last_third, pinball, read_trace, score, select_after
from benchmarks.replay.split import SPLIT, TRACES, UNSEEN
from cli.arguments import CommandParser, UsageError, require_writable_file, whole_number
from include.atomic_write import write_json, write_text
from include.utc import HOUR_S
from lab.replay.rolling import roll
from models.arrays import Floats, Ints
from models.forecasting import QUANTILES, Calendar, ForecastSettings
from tools.marked_page import put_between_marks

SIDES: Final = ("tuning", "test")
METHODS: Final = (OURS, *REFERENCES)
FIRST_DAYS: Final = (2, 3, 4)
"""Days of a new series, the first is 1, whose forecasts are compared with the repetition of the day before."""
COVERAGE: Final = (0.88, 0.92)
BEGIN, END = "<!-- forecasting_comparison: begin -->", "<!-- forecasting_comparison: end -->"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """Headings and rows of a Markdown table."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def format(self) -> str:
        """Return the table as Markdown."""
        lines = [f"| {' | '.join(row)} |" for row in (self.headings, *self.rows)]
        return "\n".join([lines[0], "|" + "---|" * len(self.headings), *lines[1:]])


def list_traces(side: str, split: Path = SPLIT) -> list[str]:
    """Return the names of the traces of a side, those of its pieces first."""
    read = tomllib.loads(split.read_text(encoding="utf-8"))[side]
    return [*(str(piece["trace"]) for piece in read["pieces"]), *map(str, read.get("further", []))]


def find_trace(name: str, folders: Sequence[Path] = (TRACES, UNSEEN)) -> Path:
    """Return the file of a trace.

    Raises:
        UsageError: it is in none of the folders.
    """
    for folder in folders:
        if files := sorted(folder.glob(f"{name}.csv*")):
            return files[0]
    raise UsageError(
        f"no {name}.csv in {', '.join(map(str, folders))}: write it with python -m benchmarks.replay.unseen"
    )


def cut_days(rates: Floats, calendar: Calendar, days: int) -> tuple[Floats, Calendar]:
    """Return the last so many days of a trace, all of a shorter one."""
    first = max(0, len(rates) - days * calendar.day)
    return rates[first:], calendar.later(first)


def compare_last_third(name: str, rates: Floats, calendar: Calendar, method: str, every_h: int) -> Row:
    """Return the figures of one method on the last third of a trace."""
    origins = last_third(rates, calendar, every_h)
    if method == OURS:
        quantiles = roll(rates, calendar, origins, ForecastSettings(horizon=calendar.day)).quantiles
    else:
        quantiles = REFERENCES[method](rates, calendar, origins, calendar.day)
    result = score(name, method, rates, calendar, quantiles, origins=origins)
    return {
        "trace": name,
        "method": method,
        "origins": len(origins),
        "coverage_q90": result.coverage_q90,
        "pinball_q50": result.pinball_q50,
        "pinball_q90": result.pinball_q90,
    }


def compare_first_days(name: str, rates: Floats, calendar: Calendar) -> Iterator[Row]:
    """Yield, per day of FIRST_DAYS, the losses of ours and of the repeated day before, hourly origins."""
    mean = float(np.nanmean(rates))
    for day in FIRST_DAYS:
        origins = np.arange((day - 1) * calendar.day, day * calendar.day, calendar.bins(HOUR_S), dtype=np.int64)
        observed = select_after(rates, origins, calendar.day)
        quantiles = roll(rates, calendar, origins, ForecastSettings(horizon=calendar.day)).quantiles
        repeated = repeat_day_before(rates, origins, calendar)
        known = np.where(np.isfinite(repeated), observed, np.nan)
        middle, upper = (quantiles[:, QUANTILES.index(level)] for level in (0.5, 0.9))
        yield {
            "trace": name,
            "day": day,
            "coverage_q90": float((known <= upper)[np.isfinite(known)].mean()),
            "pinball_q50": 100 * pinball(known, middle, 0.5) / mean,
            "pinball_q90": 100 * pinball(known, upper, 0.9) / mean,
            "repeated_q50": 100 * pinball(known, repeated, 0.5) / mean,
            "repeated_q90": 100 * pinball(known, repeated, 0.9) / mean,
        }


def repeat_day_before(rates: Floats, origins: Ints, calendar: Calendar) -> Floats:
    """Return the rates of the day before each origin, shape (O, bins of a day)."""
    return np.asarray(rates[origins[:, None] - calendar.day + np.arange(calendar.day)])


def tabulate_last_third(rows: Sequence[Row], names: Sequence[str], side: str) -> Table:
    """Return the table of one side; losses in per cent of the mean rate, ``met`` by what holds for ours."""
    by = {(row["trace"], row["method"]): row for row in rows}
    headings = ("trace", *(f"q90 covers, {one}" for one in METHODS))
    headings += tuple(f"pinball {level}, {one}" for level in ("q50", "q90") for one in METHODS)
    lines = []
    for name in names:
        mine = [by.get((name, method)) for method in METHODS]
        if mine[0] is None:
            continue
        cells = [name, *(f"{row['coverage_q90']:.1%}" if row else "-" for row in mine)]
        cells += [f"{row[f'pinball_{level}']:.3f}" if row else "-" for level in ("q50", "q90") for row in mine]
        others = [row for row in mine[1:] if row]
        lines.append((*cells, judge(mine[0], others) if len(others) == len(REFERENCES) else "-"))
    return Table((*headings, f"met ({side})"), tuple(lines))


def judge(ours: Row, others: Sequence[Row]) -> str:
    """Return what ours misses, "all" for nothing: q90 covers enough, and no loss is above the others' smallest."""
    low, high = COVERAGE
    missed = [] if low <= round(ours["coverage_q90"], 3) <= high else ["coverage"]
    for level in ("q50", "q90"):
        if any(ours[f"pinball_{level}"] > other[f"pinball_{level}"] for other in others):
            missed.append(f"pinball {level}")
    return f"not {', '.join(missed)}" if missed else "all"


def tabulate_first_days(rows: Sequence[Row], names: Sequence[str]) -> Table:
    """Return the table of the first days: losses of ours / of the repeated day before, and what q90 covers."""
    by = {(row["trace"], row["day"]): row for row in rows}
    headings = ["trace"]
    for day in FIRST_DAYS:
        headings += [f"day {day}: pinball q50", f"day {day}: pinball q90", f"day {day}: q90 covers"]
    lines = []
    for name in names:
        if (name, FIRST_DAYS[0]) not in by:
            continue
        cells = [name]
        for day in FIRST_DAYS:
            row = by[name, day]
            cells += [f"{row[f'pinball_{level}']:.2f} / {row[f'repeated_{level}']:.2f}" for level in ("q50", "q90")]
            cells.append(f"{row['coverage_q90']:.1%}")
        lines.append(tuple(cells))
    return Table(tuple(headings), tuple(lines))


def format_tables(kept: dict[str, Any]) -> str:
    """Return all tables as Markdown."""
    parts = []
    sides = [list_traces(side) for side in SIDES]
    for side, names in zip(SIDES, sides, strict=True):
        table = tabulate_last_third(kept["last_third"], names, side)
        count = sum(row[-1] == "all" for row in table.rows)
        parts += [f"Traces of the {side} side; all is met on {count} of {len(table.rows)}.", table.format()]
    parts.append(
        "First days, a day ahead from every hour: losses of ours / of the day before, repeated, whose one value stands "
        "for all quantiles."
    )
    parts.append(tabulate_first_days(kept["first_days"], [*sides[0], *sides[1]]).format())
    return "\n\n".join(parts) + "\n"


def read_kept(path: Path, settings: dict[str, int]) -> dict[str, Any]:
    """Return the rows of earlier runs.

    Raises:
        UsageError: they were made with other settings.
    """
    if not path.exists():
        return {"settings": settings, "last_third": [], "first_days": []}
    retained: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if retained["settings"] != settings:
        raise UsageError(f"{path} was made with {retained['settings']}, not {settings}: choose another --json")
    return retained


def main(argv: Sequence[str] | None = None) -> int:
    """Compare on the traces of one side or of both, and write the tables."""
    parser = CommandParser(prog="forecasting_comparison", description=__doc__.split("\n")[0])
    parser.add_argument("--side", choices=SIDES, nargs="+", default=list(SIDES), help="of replay/split.toml")
    parser.add_argument("--methods", choices=METHODS, nargs="*", default=list(METHODS), help="none: tables alone")
    parser.add_argument("--origin-every-h", type=whole_number(1, 24), default=6, help="hours between two origins")
    parser.add_argument("--last-days", type=whole_number(4), default=70, help="so much of a longer trace")
    parser.add_argument("--json", type=Path, default=Path("out/forecasting_comparison.json"))
    parser.add_argument("--table", type=Path, default=Path("out/forecasting.md"))
    parser.add_argument("--page", type=Path, help="a page with marks that gets the tables too")
    chosen = parser.parse_args(argv)
    settings = {"origin_every_h": chosen.origin_every_h, "last_days": chosen.last_days}
    console = Console()
    try:
        for path, option in ((chosen.json, "--json"), (chosen.table, "--table")):
            require_writable_file(path, option)
        retained = read_kept(chosen.json, settings)
        files = [find_trace(name) for side in chosen.side for name in list_traces(side)]
        with threadpool_limits(limits=1):
            for path in files if chosen.methods else ():
                _compare(path, chosen.methods, retained)
                write_json(chosen.json, retained)
                console.print(f"{path.name} done")
        tables = format_tables(retained)
        write_text(chosen.table, tables)
        if chosen.page:
            page = chosen.page.read_text(encoding="utf-8")
            write_text(chosen.page, put_between_marks(page, (BEGIN, END), tables.strip()))
    except (UsageError, MissingLibraryError) as error:
        parser.error(str(error))
    print(tables)
    return 0


def _compare(path: Path, methods: Sequence[str], kept: dict[str, Any]) -> None:
    """Replace the rows of one trace and of these methods."""
    settings = kept["settings"]
    name, rates, calendar = read_trace(path)
    rates, calendar = cut_days(rates, calendar, settings["last_days"])
    for method in methods:
        made = compare_last_third(name, rates, calendar, method, settings["origin_every_h"])
        kept["last_third"] = [row for row in kept["last_third"] if (row["trace"], row["method"]) != (name, method)] + [
            made
        ]
    if OURS in methods:
        others = [row for row in kept["first_days"] if row["trace"] != name]
        kept["first_days"] = others + list(compare_first_days(name, rates, calendar))


if __name__ == "__main__":
    sys.exit(main())
