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

    Args:
        capacity: rows of holdout_scores.score_capacities.
        latency: rows of holdout_scores.score_latencies.
        forward: of the trial.
        forecasts: of forecast_scores.forecast_record.
        has_champion: whether the reference is a champion; else a linear model, of capacities alone.
        tolerance: of the capacity errors.
    """
    against, reference = (CHAMPION, "champion_error") if has_champion else (LINEAR, "linear_error")
    held, hours = busy_or_all(capacity), busy_or_all(forward.capacity)
    result = [
        compare(
            "capacity_held",
            "capacity error of held-back windows",
            read_column(held, "error"),
            read_column(held, reference),
            against=against,
            tolerance=tolerance,
        )
    ]
    for place, meaning in (("seen", "at parallelisms seen before"), ("unseen", "at parallelisms never seen")):
        mine = hours[hours["place"] == place]
        result.append(
            compare(
                f"capacity_{place}",
                f"capacity error of the hours ahead {meaning}",
                read_column(mine, "error"),
                read_column(mine, reference),
                against=against,
                # A step to an unseen parallelism is rare: more chance, and less harm than being wrong every hour.
                tolerance=tolerance if place == "seen" else 2.0 * tolerance,
            )
        )
    result += [
        _coverage(held, against, name, inside, level, has_champion=has_champion)
        for name, inside, level in zip(("coverage", "coverage_95"), INSIDE, LEVELS, strict=True)
    ]
    result.append(
        compare(
            "recovery",
            "error of recovery times ahead",
            read_column(forward.recovery, "error"),
            read_column(forward.recovery, "champion_error"),
            tolerance=RECOVERY_TOLERANCE,
            against=against,
        )
    )
    recovery = forward.recovery
    result.append(_coverage(recovery, against, "recovery_coverage", INSIDE[0], LEVELS[0], has_champion=has_champion))
    result.append(
        compare(
            "latency",
            "latency error of held-back windows",
            read_column(latency, "error"),
            read_column(latency, "champion_error"),
            tolerance=LATENCY_TOLERANCE,
            against=against,
        )
    )
    return [*result, *_forecast(forecasts)]


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
    measures = {"forecast": "pinball loss of q90 over the mean rate", "forecast_coverage": "distance of q90 from 90%"}
    newest = record[record["date"] == record["date"].max()] if len(record) else record
    result = []
    for name, meaning in measures.items():
        column = "pinball_q90" if name == "forecast" else "coverage_q90"
        loss = {
            method: read_column(newest[newest["method"] == method], column) for method in (CHAMPIONS, NAIVE_FORECAST)
        }
        if name == "forecast_coverage":
            loss = {method: np.abs(share - COVERAGE_Q90) for method, share in loss.items()}
        if not all(map(len, loss.values())):
            loss = dict.fromkeys(loss, np.zeros(0))
        compared = compare(
            name,
            meaning,
            loss[CHAMPIONS],
            loss[NAIVE_FORECAST],
            against="season before",
            tolerance=FORECAST_TOLERANCE,
            decides=False,
        )
        # The one row of a method is the mean over its series.
        result.append(replace(compared, count=int(newest["series"].max()) if compared.count else 0))
    return result
