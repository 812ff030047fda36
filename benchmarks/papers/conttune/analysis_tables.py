"""What Sections 8.2 and 8.4 look at more closely: Tables 5 and 7 to 9, Figures 5 and 6."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.papers.cells import Cell
from benchmarks.papers.conttune.conttune_experiments import Method, run
from benchmarks.papers.conttune.conttune_published import PAPER, PUBLISHED, QUERIES
from benchmarks.papers.conttune.queries import query
from benchmarks.papers.conttune.query_runs import PERMUTATIONS, RATES, Outcome
from benchmarks.papers.conttune.synthetic_jobs import MAIN, NOT_CHARGED, PER_TUNING, SEEDS, Outcomes, seeds_cell
from lab.policies.tuning.tuning_options import Acquisition
from models.arrays import Floats

PER_PERMUTATION = "reconfigurations/permutation"


def peak_cores(one: Outcome) -> Floats:
    """Return the cores when ten units come for the second time, (S x 6,)."""
    return _at_second_peak(one, one.cores)


def _at_second_peak(one: Outcome, values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Floats:
    again = one.factor[:, :, RATES // 2 :] == one.factor.max()
    return np.asarray(values[:, :, RATES // 2 :][again], float)


def second_peak(result: Outcomes) -> list[Cell]:
    """Return Table 5; medians over permutations and seeds, since Q5 and Q8 are noisy."""
    published = PUBLISHED["table5_cores_at_10Wu_second_time"]
    cells = []
    for method in ("ContTune_a3", "DS2"):
        for name in QUERIES:
            cores = peak_cores(result[name, method])
            spread = float(cores.std(ddof=1))
            median = float(np.median(cores))
            cells.append(Cell(PAPER, "5", method, name, median, published[method][name], "cores", len(cores), spread))
    return cells


def latency_at_peak(result: Outcomes) -> list[Cell]:
    """Return Fig. 5 as its text puts it: ContTune's latency at the second peak over DS2's, "essentially the same".

    The plot itself has no numbers in the text.  Ours is the mean response time of the slowest operator once the tuning
    is done and the backlog gone, median over permutations and seeds: the simulator has no distribution over records.
    """
    cells = []
    for name in QUERIES:
        ours, theirs = (
            float(np.median(_at_second_peak(one, one.latency_ms)))
            for one in (result[name, "ContTune_a3"], result[name, "DS2"])
        )
        # An infinite one is no latency to compare with.
        ratio = ours / theirs if np.isfinite(ours) and np.isfinite(theirs) else np.nan
        cells += [
            Cell(PAPER, "Fig. 5", "latency, ContTune / DS2", name, ratio, 1.0, "ratio"),
            Cell(PAPER, "Fig. 5", "latency, ContTune", name, ours, None, "ms"),
            Cell(PAPER, "Fig. 5", "latency, DS2", name, theirs, None, "ms"),
        ]
    return cells


def latter_tunings(result: Outcomes) -> list[Cell]:
    """Return what the text says of Fig. 6: Q2, the latter ten tunings of a permutation, ContTune beside DS2."""
    ours, theirs = result["Q2", "ContTune_a3"], result["Q2", "DS2"]
    latter = np.s_[:, :, RATES // 2 :]
    figures = {
        "at most DS2's reconfigurations": (ours.reconfigurations <= theirs.reconfigurations, 10.0),
        "at most DS2's cores": (ours.cores <= theirs.cores, 10.0),
        "fewer cores than DS2": (ours.cores < theirs.cores, 4.0),
    }
    return [
        seeds_cell(
            "Fig. 6",
            "ContTune_a3",
            column,
            values=np.asarray(holds[latter].sum(axis=2).mean(axis=1), float),
            published=published,
            unit="tunings of 10",
        )
        for column, (holds, published) in figures.items()
    ]


def directions(result: Outcomes) -> list[Cell]:
    """Return Table 7 for a mean permutation: all reconfigurations, and those of under- and over-provisioned jobs."""
    cells = []
    published = PUBLISHED["table7_wordcount"].values()
    for method, column in (("DS2", "DS2"), ("ContTune_a3", "ContTune"), (f"ContTune_a3{NOT_CHARGED}", "ContTune")):
        one = result["WordCount", method]
        counts = {
            "kappa": one.reconfigurations,
            "theta": one.upward,
            "zeta": one.reconfigurations - one.upward,
        }
        for row, values in counts.items():
            known = float(np.mean([permutation[row][column] for permutation in published]))
            each = np.asarray(values.sum(axis=2).mean(axis=1), float)
            cells.append(seeds_cell("7", row, method, values=each, published=known, unit=PER_PERMUTATION))
    return cells


def acquisitions(progress: Callable[[str], None], result: Outcomes) -> list[Cell]:
    """Return Table 8: Q1 with CEI (Eq. 4) and with the paper's function (Eq. 5); sums over six permutations."""
    progress("ContTune: acquisition functions on Q1")
    table = PUBLISHED["table8_q1_acquisition"]
    rows = {
        "DS2": result["Q1", "DS2"],
        "CBO_eq4_CEI": run(query("Q1"), Method(acquisition=Acquisition.CEI), SEEDS),
        "CBO_eq5": result["Q1", "ContTune_a3"],
    }
    cells = []
    for row, one in rows.items():
        each = one.reconfigurations.sum(axis=2)
        sums = np.asarray(each.sum(axis=1), float)
        known = float(sum(table[row]))
        cells.append(seeds_cell("8", row, "sum", values=sums, published=known, unit="reconfigurations"))
        for column, pick in (("fewest", np.min), ("most", np.max)):
            ours = np.asarray(pick(each, axis=1), float)
            known = float(pick(table[row]))
            cells.append(seeds_cell("8", row, column, values=ours, published=known, unit=PER_PERMUTATION))
    return cells


def top_k(progress: Callable[[str], None], result: Outcomes) -> list[Cell]:
    """Return Table 9: Q5 with and without Top-K and mean-reversion; sums over three permutations."""
    progress("ContTune: Top-K on Q5")
    rows = {
        "DS2": result["Q5", "DS2"],
        "CBO_without": run(query("Q5"), Method(keep=1), SEEDS),
        "CBO_with": result["Q5", "ContTune_a3"],
    }
    half = PERMUTATIONS // 2
    table = PUBLISHED["table9_q5_topk"]
    return [
        seeds_cell(
            "9",
            row,
            "sum",
            values=np.asarray(one.reconfigurations[:, :half].sum(axis=(1, 2)), float),
            published=float(sum(table[row])),
            unit="reconfigurations",
        )
        for row, one in rows.items()
    ]


def other_readings(progress: Callable[[str], None]) -> list[Cell]:
    """Return Tables 4a and 5 of Q1 and Q2 for the other readings of the measured curves."""
    counts, cores = PUBLISHED["table4a_avg_reconfigurations"], PUBLISHED["table5_cores_at_10Wu_second_time"]
    cells = []
    for reading in ("free law", "interpolated"):
        progress(f"ContTune: Q1 and Q2, measured curves {reading}")
        for name in ("Q1", "Q2"):
            job, column = query(name, reading), f"{name}, {reading}"
            for row, settings in MAIN.items():
                one, known = run(job, settings, SEEDS), counts[row][name]
                each = one.mean_per_seed
                cells.append(
                    seeds_cell("4a, other readings", row, column, values=each, published=known, unit=PER_TUNING)
                )
                if row in cores:
                    ours, known = float(np.median(peak_cores(one))), cores[row][name]
                    cells.append(Cell(PAPER, "5, other readings", row, column, ours, known, "cores", SEEDS))
    return cells
