"""Random search, which the paper simulates too: its published figures follow from counting alone."""

from __future__ import annotations

import numpy as np

from benchmarks.papers.cells import Cell
from benchmarks.papers.conttune.conttune_published import PAPER, PUBLISHED, QUERIES, TUNINGS
from lab.policies.baselines.random_search import search_order

# How many operators are searched at the same time.  Inferred from the published means, which lie at m (B + 1) / (m + 1)
# for the bound B of Table 4b; no m explains Q5 (13.36: 11.33 would be m = 2 with B = 16, 16.5 m = 1 with B = 32).
SEARCHED = {"WordCount": 2, "Q1": 2, "Q2": 1, "Q3": 1, "Q5": 1, "Q8": 1}
RUNS = 30


def random_search() -> list[Cell]:
    """Return the row of Table 4a: tries until the best parallelism of every searched operator was found.

    As in the paper the search is simulated without a job, and stops at the optimum that the other methods found.  By
    symmetry every target takes as long, so it is fixed at 1.
    """
    published, bounds = PUBLISHED["table4a_avg_reconfigurations"]["RandomSearch"], PUBLISHED["table4b_max_cores"]
    cells = []
    for name in QUERIES:
        bound = bounds["RandomSearch"][name]
        means = np.array([_mean_tries(name, bound, number) for number in range(RUNS)])
        cells.append(
            Cell(
                PAPER,
                "4a",
                "RandomSearch",
                name,
                float(means.mean()),
                published[name],
                "reconfigurations/tuning",
                RUNS,
                float(means.std(ddof=1)),
            )
        )
    return cells


def _mean_tries(name: str, bound: int, number: int) -> float:
    tries = [
        max(
            int(np.flatnonzero(search_order(number * TUNINGS + tuning, f"{name}-{operator}", bound) == 1)[0]) + 1
            for operator in range(SEARCHED[name])
        )
        for tuning in range(TUNINGS)
    ]
    return float(np.mean(tries))
