"""ContTune's evaluation: Tables 4 to 9 and Fig. 7."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.papers.cells import Cell
from benchmarks.papers.conttune import plots, real_jobs, synthetic
from benchmarks.papers.conttune.accounting import dragster, random_search


def tables(progress: Callable[[str], None], out: Path) -> list[Cell]:
    """Run every experiment; pictures are written to ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    found = synthetic.outcomes(progress)
    counts = synthetic.reconfigurations(found)
    real = real_jobs.reconfigurations(progress)
    plots.reconfigurations(out / "conttune_reconfigurations.png", counts, real)
    plots.course(out / "conttune_q2.png", "Q2", {method: found["Q2", method] for method in synthetic.METHODS})
    return [
        *counts,
        *random_search(),
        *dragster(),
        *synthetic.other_readings(progress),
        *synthetic.costs(found),
        *synthetic.identities(),
        *synthetic.second_peak(found),
        *synthetic.directions(found),
        *synthetic.acquisitions(progress, found),
        *synthetic.top_k(progress, found),
        *real,
    ]
