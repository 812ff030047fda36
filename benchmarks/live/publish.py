"""The published live runs: copies of their files, and the tables of README.md and docs/live.md made of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Final

from benchmarks.live.calibration import read_calibration
from benchmarks.live.paired import compare_pairs, format_pairs
from benchmarks.live.policies import POLICIES
from benchmarks.live.results import RunResult, read_results
from benchmarks.live.run import read_prices
from benchmarks.live.simulator import compare_runs
from benchmarks.live.tables import describe_error, format_comparisons, format_table, list_against, sort_results
from include.atomic_write import write_text
from include.settings import PROJECT
from tools.marked_page import put_between_marks

RESULTS: Final = PROJECT / "benchmarks" / "live" / "results"
README, PAGE = PROJECT / "README.md", PROJECT / "docs" / "live.md"
SIMULATOR_ERROR: Final = RESULTS / "simulator_error.txt"
"""The sentence that stands beside every table of simulated costs."""
MARKS: Final = "<!-- live: written by make live -->\n", "<!-- end of live -->"


def publish(folder: Path) -> list[Path]:
    """Copy the valid runs of a folder and the calibrations of their jobs, and write the pages; return them.

    Args:
        folder: ``<out>/live``.
    """
    (RESULTS / "live" / "runs").mkdir(parents=True, exist_ok=True)
    for one in (one for one in read_results(folder) if one.is_valid):
        name = f"{one.job}-{one.policy}-{one.seed}.json"
        shutil.copyfile(folder / "runs" / name, RESULTS / "live" / "runs" / name)
        calibration = f"calibration-{one.job}.json"
        shutil.copyfile(folder / calibration, RESULTS / "live" / calibration)
    pages = format_pages()
    for path, text in pages.items():
        write_text(path, text)
    return list(pages)


def format_pages(results: Path = RESULTS) -> dict[Path, str]:
    """Return the pages as they are written from the published runs."""
    runs = sort_results(read_results(results / "live"))
    pairs = format_pairs(compare_pairs(runs))
    means, about = format_means(runs), describe_runs(runs)
    against = list_against(runs) or ["Nothing: no policy has less of anything."]
    calibrations = {
        job: read_calibration(results / "live" / f"calibration-{job}.json")
        for job in dict.fromkeys(one.job for one in runs)
    }
    compared = compare_runs(runs, calibrations, read_prices())
    beside = format_comparisons(compared)
    whole = ["## What the comparison says against Tidewise", *against, "## Tidewise minus others, by seed", pairs]
    whole += ["## Runs", format_table(runs), "## The simulator beside it", beside]
    paired = "Tidewise minus each other policy on the same seeds, mean and 95% interval:"
    return {
        results / "live.md": "\n\n".join(whole) + "\n",
        results / SIMULATOR_ERROR.name: describe_error(compared) + "\n",
        README: put_between_marks(README.read_text(encoding="utf-8"), MARKS, f"{about}\n\n{means}\n"),
        PAGE: put_between_marks(
            PAGE.read_text(encoding="utf-8"),
            MARKS,
            f"{about}\n\n{means}\n\n{paired}\n\n{pairs}\n\nThe simulator beside them:\n\n{beside}\n",
        ),
    }


def read_simulator_error() -> str:
    """Return by how much the simulator was off beside the published runs, as a sentence."""
    return SIMULATOR_ERROR.read_text(encoding="utf-8").strip()


def describe_runs(runs: Iterable[RunResult]) -> str:
    """Return what was run, as a sentence."""
    each = list(runs)
    jobs = ", ".join(dict.fromkeys(one.job for one in each))
    minutes = sorted({f"{one.minutes:g}" for one in each}, key=float)
    return f"{len(each)} runs of {jobs}, {' or '.join(minutes)} minutes of load each; means of the seeds."


def format_means(runs: Iterable[RunResult]) -> str:
    """Return a line per job and policy: means over seeds."""
    by_policy: dict[tuple[str, str], list[RunResult]] = {}
    for one in runs:
        by_policy.setdefault((one.job, one.policy), []).append(one)
    lines = [
        "| job | policy | seeds | cost | late minutes | slot-hours | rescales | records lost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (job, policy), each in by_policy.items():
        figures = [
            fmean(getattr(one.measures, name) for one in each) for name in ("cost", "late_minutes", "slot_hours")
        ]
        rescales = fmean(one.measures.rescales for one in each)
        lost = [one.records_lost for one in each]
        shown = "not known" if None in lost else str(sum(abs(one or 0) for one in lost))
        cells = [job, POLICIES[policy].title, str(len(each)), *(f"{value:.2f}" for value in figures)]
        lines.append(f"| {' | '.join([*cells, f'{rescales:.1f}', shown])} |")
    return "\n".join(lines)
