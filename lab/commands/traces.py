"""The shipped traces: compressed CSV files of public input rates (see ``data/traces/README.md``)."""

from __future__ import annotations

import csv
import gzip
from datetime import datetime
from pathlib import Path

import numpy as np

from lab.simulation.source_load import WeeklyTrace
from lab.simulation.spec import SpecError

TRACES = Path(__file__).resolve().parents[2] / "data" / "traces"


HISTORY = frozenset({"dsp_taxi", "dsp_wiki_de", "nab_nyc_taxi"})
"""Shipped traces of three weeks or more; the shorter ones are there for replays."""


def load_traces(folder: Path = TRACES) -> dict[str, WeeklyTrace]:
    """Read ``<name>_<n>min.csv.gz`` files of two columns, time and value; returns name -> trace.

    All files of a folder, of the shipped ones those of ``HISTORY``.

    Raises:
        SpecError: the folder holds none, or a file is no such trace.
    """
    traces = {}
    for path in sorted(folder.glob("*min.csv.gz")):
        name = path.name.rsplit("_", 1)[0]
        if folder == TRACES and name not in HISTORY:
            continue
        traces[name] = _read_trace(path)
    if not traces:
        raise SpecError(f"no traces in {folder}; restore data/traces from the repository")
    return traces


def _read_trace(path: Path) -> WeeklyTrace:
    """Read a file of two columns; what would have to be guessed is refused.

    Raises:
        SpecError: other columns, times that are no ISO 8601, or values that are no rates.
    """
    with gzip.open(path, "rt", newline="") as lines:
        header, *rows = list(csv.reader(lines)) or [[]]
    if len(header) != 2 or any(len(row) != 2 for row in rows) or len(rows) < 2:
        raise SpecError(f"{path}: expected rows of two columns, time and value; found {header}")
    try:
        first, second = (datetime.fromisoformat(row[0]) for row in rows[:2])
        values = np.array([float(row[1]) for row in rows])
    except ValueError as error:
        raise SpecError(f"{path}: {error}; write times as ISO 8601 (2026-04-03 00:00:00), and numbers") from error
    step_s = round((second - first).total_seconds())
    if step_s <= 0 or not (values >= 0).all():
        raise SpecError(f"{path}: times have to rise, and rates to be numbers that are not negative")
    return WeeklyTrace.from_values(values, step_s, week_second(first))


def week_second(timestamp: datetime) -> int:
    """Return seconds since Monday 00:00."""
    return timestamp.weekday() * 86400 + timestamp.hour * 3600 + timestamp.minute * 60 + timestamp.second
