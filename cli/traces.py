"""The shipped traces: compressed CSV files of public input rates (see ``data/traces/README.md``)."""

from __future__ import annotations

import csv
import gzip
from datetime import datetime
from pathlib import Path

import numpy as np

from models.simulation.source_load import WeeklyTrace
from models.simulation.spec import SpecError

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"


HISTORY = frozenset({"dsp_taxi", "dsp_wiki_de", "nab_nyc_taxi"})
"""Shipped traces of three weeks or more; the shorter ones are there for replays."""


def load_traces(folder: Path = TRACES) -> dict[str, WeeklyTrace]:
    """Read ``<name>_<n>min.csv.gz`` files of two columns, time and value; returns name -> trace.

    All files of a folder, of the shipped ones those of ``HISTORY``.

    Raises:
        SpecError: the folder holds none.
    """
    traces = {}
    for path in sorted(folder.glob("*min.csv.gz")):
        name = path.name.rsplit("_", 1)[0]
        if folder == TRACES and name not in HISTORY:
            continue
        with gzip.open(path, "rt", newline="") as lines:
            rows = list(csv.reader(lines))[1:]
        first, second = datetime.fromisoformat(rows[0][0]), datetime.fromisoformat(rows[1][0])
        values = np.array([float(row[1]) for row in rows])
        step_s = round((second - first).total_seconds())
        traces[name] = WeeklyTrace.from_values(values, step_s, week_second(first))
    if not traces:
        raise SpecError(f"no traces in {folder}; restore data/traces from the repository")
    return traces


def week_second(timestamp: datetime) -> int:
    """Return seconds since Monday 00:00."""
    return timestamp.weekday() * 86400 + timestamp.hour * 3600 + timestamp.minute * 60 + timestamp.second
