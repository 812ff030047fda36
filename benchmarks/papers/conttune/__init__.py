"""ContTune's evaluation: Tables 4 to 9, Fig. 3 and 5 to 7, Eq. 7 to 9."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.papers.cells import Cell
from benchmarks.papers.conttune import analysis_tables, conttune_plots, real_jobs, synthetic_jobs
from benchmarks.papers.conttune.accounting import random_search
from benchmarks.papers.conttune.complexity import bounds
from benchmarks.papers.conttune.worked_example import worked_example


def tables(progress: Callable[[str], None], out: Path) -> list[Cell]:
    """Run every experiment; pictures are written to ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    result = synthetic_jobs.outcomes(progress)
    counts = synthetic_jobs.reconfigurations(result)
    real = real_jobs.reconfigurations(progress)
    conttune_plots.reconfigurations(out / "conttune_reconfigurations.png", counts, real)
    conttune_plots.course(
        out / "conttune_q2.png", "Q2", {method: result["Q2", method] for method in synthetic_jobs.METHODS}
    )
    return [
        *worked_example(),
        *bounds(counts),
        *counts,
        *random_search(),
        *analysis_tables.other_readings(progress),
        *synthetic_jobs.costs(result),
        *synthetic_jobs.identities(),
        *analysis_tables.second_peak(result),
        *analysis_tables.latency_at_peak(result),
        *analysis_tables.latter_tunings(result),
        *analysis_tables.directions(result),
        *analysis_tables.acquisitions(progress, result),
        *analysis_tables.top_k(progress, result),
        *real,
    ]
