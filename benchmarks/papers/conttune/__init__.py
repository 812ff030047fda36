"""ContTune's evaluation: Tables 4 to 9 and Fig. 7."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.papers.cells import Cell
from benchmarks.papers.conttune import conttune_plots, real_jobs, synthetic_jobs
from benchmarks.papers.conttune.accounting import dragster, random_search


def tables(progress: Callable[[str], None], out: Path) -> list[Cell]:
    """Run every experiment; pictures are written to ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    found = synthetic_jobs.outcomes(progress)
    counts = synthetic_jobs.reconfigurations(found)
    real = real_jobs.reconfigurations(progress)
    conttune_plots.reconfigurations(out / "conttune_reconfigurations.png", counts, real)
    conttune_plots.course(
        out / "conttune_q2.png", "Q2", {method: found["Q2", method] for method in synthetic_jobs.METHODS}
    )
    return [
        *counts,
        *random_search(),
        *dragster(),
        *synthetic_jobs.other_readings(progress),
        *synthetic_jobs.costs(found),
        *synthetic_jobs.identities(),
        *synthetic_jobs.second_peak(found),
        *synthetic_jobs.directions(found),
        *synthetic_jobs.acquisitions(progress, found),
        *synthetic_jobs.top_k(progress, found),
        *real,
    ]
