"""From scores to the criteria of the gate: everything that plans use, each as one comparison."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from models.arrays import Floats
from models.capacity.conformal import LEVELS
from models.training.gate import Criterion, compare
from spark_jobs.train.forecast_scores import CHAMPIONS
from spark_jobs.train.forward_scores import ForwardScores
from spark_jobs.train.holdout_scores import INSIDE

CHAMPION, LINEAR = "champion", "linear model"
NAIVE_FORECAST = "seasonal_naive"
COVERAGE_Q90 = 0.9
# Absolute, as training.gate_tolerance is of the capacity error; these vary more from night to night.
COVERAGE_TOLERANCE = 0.1
RECOVERY_TOLERANCE = 0.1
LATENCY_TOLERANCE = 0.1
FORECAST_TOLERANCE = 0.02


def busy_or_all(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of busy operators; all of them where every operator is idle: they are the best there is."""
    busy = rows[rows["idle"] == False]  # noqa: E712 - may be null
    return busy if len(busy) else rows


def list_criteria(
    capacity: pd.DataFrame,
    latency: pd.DataFrame,
    forward: ForwardScores,
    forecasts: pd.DataFrame,
    *,
    has_champion: bool,
    tolerance: float,
) -> list[Criterion]:
    """Return the criteria in the order in which they are shown.

    Rows are those of holdout_scores and forecast_scores. Without a champion the reference is a linear model, of
    capacities alone; ``tolerance`` is of the capacity errors.
    """
    against, reference = (CHAMPION, "champion_error") if has_champion else (LINEAR, "linear_error")
    held, hours, recovery = busy_or_all(capacity), busy_or_all(forward.capacity), forward.recovery

    def compare_errors(name: str, meaning: str, rows: pd.DataFrame, other: str, most: float) -> Criterion:
        ours, theirs = read_column(rows, "error"), read_column(rows, other)
        return compare(name, meaning, ours, theirs, against=against, tolerance=most)

    def compare_coverage(name: str, rows: pd.DataFrame, level: int) -> Criterion:
        return _coverage(rows, against, name, INSIDE[level], LEVELS[level], has_champion=has_champion)

    old, new = (hours[hours["place"] == place] for place in ("seen", "unseen"))
    ahead = "capacity error of the hours ahead at parallelisms"
    return [
        compare_errors("capacity_held", "capacity error of held-back windows", held, reference, tolerance),
        compare_errors("capacity_seen", f"{ahead} seen before", old, reference, tolerance),
        # A step to an unseen parallelism is rare: more chance, and less harm than being wrong every hour.
        compare_errors("capacity_unseen", f"{ahead} never seen", new, reference, 2.0 * tolerance),
        compare_coverage("coverage", held, 0),
        compare_coverage("coverage_95", held, 1),
        compare_errors("recovery", "error of recovery times ahead", recovery, "champion_error", RECOVERY_TOLERANCE),
        compare_coverage("recovery_coverage", recovery, 0),
        compare_errors("latency", "latency error of held-back windows", latency, "champion_error", LATENCY_TOLERANCE),
        *_forecast(forecasts),
    ]


def read_column(rows: pd.DataFrame, column: str) -> Floats:
    """Return (n,) numbers of a column; NaN where there is no such one."""
    return rows[column].to_numpy(float) if column in rows else np.full(len(rows), np.nan)


def _coverage(
    held: pd.DataFrame, against: str, name: str, column: str, level: float, *, has_champion: bool
) -> Criterion:
    """Compare how far the share of windows inside a band is from the share that it promises."""
    inside, reference = read_column(held, column), read_column(held, f"champion_{column}")
    both = np.isfinite(inside) & np.isfinite(reference) if has_champion else np.isfinite(inside)
    count = int(both.sum()) if has_champion else 0
    band = "recovery's 80% interval" if name == "recovery_coverage" else f"the {level:.0%} band"
    meaning = f"distance of the coverage of {band} from {level:.0%}"
    off = abs(float(inside[both].mean()) - level) if both.any() else float("nan")
    other = abs(float(reference[both].mean()) - level) if count else float("nan")
    chance = 2.0 * np.sqrt(level * (1.0 - level) / count) if count else 0.0
    return Criterion(name, meaning, off, other, against, count, COVERAGE_TOLERANCE, float(chance))


def _forecast(record: pd.DataFrame) -> list[Criterion]:
    """Compare the newest forecasts with the season before; a model is not refused for them, it has no part in them."""
    newest = record[record["date"] == record["date"].max()] if len(record) else record
    methods = [newest[newest["method"] == method] for method in (CHAMPIONS, NAIVE_FORECAST)]
    result = []
    for name, meaning, column, best in (
        ("forecast", "pinball loss of q90 over the mean rate", "pinball_q90", 0.0),
        ("forecast_coverage", "distance of q90 from 90%", "coverage_q90", COVERAGE_Q90),
    ):
        ours, theirs = (np.abs(read_column(rows, column) - best) for rows in methods)
        if not (len(ours) and len(theirs)):
            ours = theirs = np.zeros(0)
        compared = compare(
            name, meaning, ours, theirs, against="season before", tolerance=FORECAST_TOLERANCE, decides=False
        )
        # The one row of a method is the mean over its series.
        result.append(replace(compared, count=int(newest["series"].max()) if compared.count else 0))
    return result
