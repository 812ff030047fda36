"""Everything that a training measures, by the names of its metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from models.bundle.job_models import CauseKind
from models.recovery.intervals import is_inside_ahead
from models.training.gate import Gate
from spark_jobs.train.build_bundle import AssembledBundle
from spark_jobs.train.forward_scores import ForwardScores
from spark_jobs.train.gate_criteria import busy_or_all
from spark_jobs.train.recovery_scores import recovery_errors

NEWEST_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class TrainingScores:
    """Held-back errors: per observation, per window and per event; and those of a trial, forward in time."""

    capacity: pd.DataFrame
    latency: pd.DataFrame
    recovery: pd.DataFrame
    forward: ForwardScores


def list_measures(assembled: AssembledBundle, scores: TrainingScores) -> dict[str, float]:
    """Return everything measured, by name; a measure without data is NaN."""
    operators, recovery = assembled.operators, scores.recovery.sort_values("started_at", ignore_index=True)
    capacity = busy_or_all(scores.capacity)
    errors = recovery_errors(recovery)
    both = capacity[["error", "champion_error"]].notna().all(axis=1)
    observed, predicted = recovery["seen_s"].to_numpy(float), recovery["predicted_s"].to_numpy(float)
    comparable = np.isfinite(observed) & np.isfinite(predicted) & (observed > 0)
    downtime = assembled.events["downtime_s"].to_numpy(float)
    still = downtime > 0
    before = assembled.events["downtime_before_s"].to_numpy(float)[still]
    newest = newest_half(recovery)
    covered = is_inside_ahead(recovery["standardised"].to_numpy(float))
    curves = operators["slope_per_s"].notna()
    return {
        "capacity_mape": float(capacity["error"].mean()),
        "capacity_coverage_80": float(capacity["inside"].mean()),
        "capacity_coverage_95": float(capacity["inside_95"].mean()),
        "capacity_held": float(capacity["error"].notna().sum()),
        "compared": float(both.sum()),
        "compared_mape": float(capacity.loc[both, "error"].mean()),
        "champion_capacity_mape": float(capacity.loc[both, "champion_error"].mean()),
        "linear_capacity_mape": float(capacity["linear_error"].mean()),
        "latency_mape": float(scores.latency["error"].mean()),
        "recovery_mape": _mean(errors[newest & np.isfinite(errors)]),
        "recovery_coverage_80": float(np.nanmean(covered[newest, 0])) if comparable[newest].any() else float("nan"),
        "recovery_coverage_95": float(np.nanmean(covered[newest, 1])) if comparable[newest].any() else float("nan"),
        **{f"recovery_mape_{kind}": error for kind, error in errors_by_kind(recovery[newest], errors[newest]).items()},
        "recovery_mape_without_resolution": _mean((np.abs(predicted - observed) / observed)[newest & comparable]),
        "recovery_events": float((newest & comparable).sum()),
        "recovery_predicted_unbounded": float(np.isinf(predicted).sum()),
        "downtime_mape": _mean(np.abs(before - downtime[still]) / downtime[still]),
        "events": float(len(downtime)),
        "operators": float(len(operators)),
        "curves": float(curves.sum()),
        "curves_line_only": float((curves & operators["length_scale"].isna()).sum()),
        "curves_at_bound": float((operators["at_bound"] == True).sum()),  # noqa: E712 - None where there is no curve
        "curves_of_idle_operators": float((operators["idle"] == True).sum()),  # noqa: E712
    }


def newest_half(recovery: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return (n,) which events are scored: each job's newer half, predicted from what came before them."""
    place = recovery.groupby(["cluster", "job"])["started_at"].rank(method="first", ascending=False, pct=True)
    return np.asarray(place.to_numpy(float) <= NEWEST_SHARE)


def errors_by_kind(recovery: pd.DataFrame, errors: np.ndarray) -> dict[str, float]:
    """Return the mean error of each kind of event, NaN without one."""
    kinds = recovery["cause_kind"].to_numpy()
    return {kind: _mean(errors[(kinds == kind) & np.isfinite(errors)]) for kind in get_args(CauseKind)}


def gate_measures(gate: Gate) -> dict[str, float]:
    """Return the criteria as metrics."""
    result: dict[str, float] = {}
    for one in gate.criteria:
        result |= {
            f"gate_{one.name}": one.challenger,
            f"gate_{one.name}_reference": one.reference,
            f"gate_{one.name}_rows": float(one.count),
        }
    return result


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")
