"""Fig. 3: the known region of one operator, and whether the acquired parallelism is accepted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.papers.cells import Cell
from benchmarks.papers.conttune.conttune_published import PAPER, PUBLISHED
from lab.policies.tuning.acquisition_functions import distance_to_observed


def worked_example() -> list[Cell]:
    """Return the figures that the example prints, by the functions that the policy uses."""
    example = PUBLISHED["fig3_worked_example"]
    known, share = known_share(example["observed"], alpha=example["alpha"], p_max=example["p_max"])
    distance = int(distance_to_observed(np.array([example["p_acq"]]), np.array(example["observed"]))[0])
    accepted = distance <= example["alpha"]
    figures = {
        "length of the known region": (known, example["len_all"], "parallelisms"),
        "Pr_use": (share, example["Pr_use"], "1"),
        "d_nearest": (distance, example["d_nearest"], "parallelisms"),
        "p_acq is applied": (float(accepted), float(example["apply"] == "p_acq"), "1: yes"),
    }
    return [
        Cell(PAPER, "Fig. 3", "example", column, float(ours), float(published), unit)
        for column, (ours, published, unit) in figures.items()
    ]


def known_share(observed: Sequence[int], *, alpha: int, p_max: int) -> tuple[int, float]:
    """Return len_all and Pr_use of Fig. 3: the length of the known regions, overlaps counted once, and its share.

    A region is the interval [p - alpha, p + alpha] around an observed parallelism, cut to what can run.  Deviation: the
    text cuts at 0; only a cut at 1 gives the 12 of 15 that Fig. 3 prints.

    Args:
        observed: parallelisms, at most ``p_max``.
        alpha: radius of a region.
        p_max: of the job.
    """
    length, covered = 0, 1
    for parallelism in sorted(observed):
        begin, end = max(parallelism - alpha, covered), min(parallelism + alpha, p_max)
        length += max(end - begin, 0)
        covered = max(covered, end)
    return length, length / p_max
