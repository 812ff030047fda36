"""Figures of the capacity models of the code at hand: coverage forward in time, errors, extrapolation, training time.

It also runs within the tree of an earlier commit, into which ``benchmarks.pipeline.models`` copies it: ``python -m
benchmarks.capacity.measures OUT.json [LAKE]``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.capacity.families import BEYOND, FAMILIES, SEEDS, TOP, make_family
from benchmarks.capacity.generations import Windows, fit_model, learn_half_widths, predict
from benchmarks.capacity.history import read_windows, split_in_time

OPERATORS: Final = 256  # of each family and seed
REPEATS: Final = 2  # further fits that are timed
TRIAL_SHARE: Final = 0.6  # of each operator's stays, which the trial is made of
PLACES: Final = ("seen", "between", "beyond")
Figures = dict[str, float]


def measure_family(name: str, seeds: Sequence[int]) -> Figures:
    """Return the figures of one family over some seeds."""
    result: list[dict[str, np.ndarray]] = []
    cpu_s = 0.0
    for seed in seeds:
        family = make_family(name, OPERATORS, seed)
        largest = np.zeros(OPERATORS)
        np.maximum.at(largest, family.owner, family.parallelism)
        windows = Windows(
            family.owner,
            family.parallelism,
            family.stay.astype(float),
            family.capacity_per_s,
            family.key_groups,
            largest,
        )
        last = np.zeros(OPERATORS)
        np.maximum.at(last, family.owner, family.stay)
        model = fit_model(windows, TOP)
        # The least of several: other work on the machine makes processor time longer, never shorter.
        cpu_s += min([model.cpu_s, *(fit_model(windows, TOP).cpu_s for _ in range(REPEATS))])
        ahead = family.stay > TRIAL_SHARE * last[family.owner]
        widths = learn_half_widths(model, windows, ahead, TOP)
        reported = predict(model, family.test_owner, family.test_parallelism)
        away = np.abs(family.test_per_s[reported.known] - reported.mean_per_s) / reported.sd_per_s
        result.append({
            "inside": away[:, None] <= widths[reported.place],
            "error": reported.mean_per_s / family.test_true_per_s[reported.known] - 1.0,
            "place": reported.place,
            "reach": reported.reach,
            "width": widths[reported.place, 0] * reported.sd_per_s / reported.mean_per_s,
        })  # fmt: skip
    pooled = {key: np.concatenate([one[key] for one in result]) for key in result[0]}
    inner = pooled["reach"] <= 1.0
    return {
        **_coverage(pooled["inside"], pooled["place"]),
        "root of mean squared error, seen and between": float(np.sqrt(np.mean(pooled["error"][inner] ** 2))),
        **dict(_extrapolation(pooled)),
        "training time per operator, us": 1e6 * cpu_s / (OPERATORS * len(seeds)),
    }


def _coverage(inside: np.ndarray, place: np.ndarray) -> Figures:
    """Return the shares inside the intervals of 80% and 95%, apart for the places."""
    return {
        f"{level} covered, {name}": _mean(inside[place == number, column])
        for number, name in enumerate(PLACES)
        for column, level in enumerate(("80%", "95%"))
    }


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _extrapolation(pooled: dict[str, np.ndarray]) -> Iterator[tuple[str, float]]:
    for factor in BEYOND[1:]:
        near = np.abs(pooled["reach"] - factor) < 0.1
        error = pooled["error"][near]
        yield f"mean error at {factor:g}x the largest seen", float(np.abs(error).mean())
        yield f"bias at {factor:g}x the largest seen", float(error.mean())
        yield f"half-width of 80% at {factor:g}x", float(pooled["width"][near].mean())


def measure_history(lake: Path, cluster: str) -> Figures:
    """Return coverage and error on the windows of a cluster in the lake of ``make run``, forward in time.

    Of the recorded minutes the last 40% are predicted; of a history of days, each of its later days from those before.
    """
    windows, top = read_windows(lake, cluster)
    inside, place, error = [], [], []
    for before, ahead, test in split_in_time(windows):
        known = windows.take(before | ahead)
        model = fit_model(known, top)
        widths = learn_half_widths(model, known, ahead[before | ahead], top)
        later = windows.take(test)
        reported = predict(model, later.owner, later.parallelism)
        observed = later.capacity_per_s[reported.known]
        inside.append(
            np.abs(observed - reported.mean_per_s)[:, None] <= widths[reported.place] * reported.sd_per_s[:, None]
        )
        place.append(reported.place)
        error.append(np.abs(reported.mean_per_s / observed - 1.0))
    covered, where, away = np.concatenate(inside), np.concatenate(place), np.concatenate(error)
    by_place = {f"mean error, {name}": _mean(away[where == number]) for number, name in enumerate(PLACES)}
    overall = {"80% covered, all": float(covered[:, 0].mean()), "95% covered, all": float(covered[:, 1].mean())}
    counts = {f"windows, {name}": float((where == number).sum()) for number, name in enumerate(PLACES)}
    return {**overall, **_coverage(covered, where), "mean error, all": float(away.mean()), **by_place, **counts}


def measure(lake: Path | None) -> dict[str, Figures]:
    """Return all figures by family or history."""
    result = {name: measure_family(name, SEEDS["test"]) for name in FAMILIES}
    if lake is not None:
        result |= {f"make run, {cluster}": measure_history(lake, cluster) for cluster in ("simulated", "recorded")}
    return result


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        found = measure(Path(sys.argv[2]) if len(sys.argv) > 2 else None)
    Path(sys.argv[1]).write_text(json.dumps(found))
