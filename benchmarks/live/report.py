"""Table and page of the runs that are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks.live.calibration import read_calibration
from benchmarks.live.page import render_page
from benchmarks.live.paired import compare_pairs, format_pairs
from benchmarks.live.results import read_results
from benchmarks.live.run import read_prices
from benchmarks.live.simulator import compare_runs
from benchmarks.live.tables import format_comparisons, format_table, list_against, sort_results
from cli.arguments import UsageError
from include.atomic_write import write_json, write_text


def write_report(folder: Path, say: Callable[[str], None]) -> Path:
    """Write ``live.html``, ``live.md`` and ``live.json`` beside a folder, and print the table; returns the page.

    Raises:
        UsageError: no run is there.
    """
    results = sort_results(read_results(folder))
    if not results:
        raise UsageError(f"no runs below {folder / 'runs'}: leave --report out")
    calibrations = {
        job: read_calibration(file)
        for job in dict.fromkeys(one.job for one in results)
        if (file := folder / f"calibration-{job}.json").is_file()
    }
    comparisons = compare_runs(results, calibrations, read_prices())
    against = list_against(results)
    table = format_table(results)
    beside = format_comparisons(comparisons)
    parts = ["## What the comparison says against Tidewise", *(against or ["Nothing: no policy has less of anything."])]
    parts += ["## Tidewise minus others, by seed", format_pairs(compare_pairs(results))]
    parts += ["## Runs", table, "## The simulator beside it", beside]
    page = folder.parent / "live.html"
    write_text(page, render_page(results, against, comparisons))
    write_text(page.with_suffix(".md"), "\n\n".join(parts) + "\n")
    rows = [{**asdict(one), "is_valid": one.is_valid, "records_lost": one.records_lost} for one in results]
    write_json(page.with_suffix(".json"), {"runs": rows, "simulator": [asdict(one) for one in comparisons]})
    say(f"\n\n{table}\n")
    for one in against:
        say(one)
    return page
