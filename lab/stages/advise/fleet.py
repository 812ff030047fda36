"""The fleet's figures from those of its jobs: totals with intervals, an order, and how models were calibrated."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fleet.frontier import PolicyCurve
from include.settings import Settings
from lab.advice.frontier import sum_curves
from models.arrays import Floats
from models.intervals import estimate

MONTH_DAYS = 30.0
MEASURES = ("cost", "slot_hours", "late_minutes", "rescales")


def describe_fleet(made: Mapping[str, Any], rows: Sequence[Mapping[Any, Any]], settings: Settings) -> dict[str, Any]:
    """Return the content of page and JSON: what it was made of, totals, calibration, jobs in their order.

    Jobs on which Tidewise advises against itself come first, then those with the largest saving.

    Args:
        made: what the appraisal was made of.
        rows: of :data:`lab.stages.advise.job_advice.ROW_SCHEMA`.
        settings: of the run.
    """
    done = [row for row in rows if is_text(row["appraisal"])]
    jobs = [{"cluster": row["cluster"], "job": row["job"], **json.loads(row["appraisal"])} for row in done]
    remaining = [row for row in rows if is_text(row["skipped"])]
    skipped = [{key: row[key] for key in ("cluster", "job", "skipped", "why")} for row in remaining]
    jobs.sort(key=lambda one: (not one["verdict"]["is_against"], -_read_saving(one), one["cluster"], one["job"]))
    whole = [one for one in jobs if one["days"] == made["days"]]
    return {
        **made,
        "totals": describe_totals(whole, settings),
        "totals_of": len(whole),
        "calibration": describe_calibration(jobs),
        "curves": [asdict(one) for one in sum_curves([map_curves(job) for job in whole if job["curves"]])],
        "jobs": jobs,
        "skipped": skipped,
    }


def map_curves(job: Mapping[str, Any]) -> tuple[PolicyCurve, ...]:
    """Return the curves of a job's frontier."""
    return tuple(map(PolicyCurve.of, job["curves"]))


def is_text(value: object) -> bool:
    """Whether a value is a text, and no null of Spark, which pandas may give as NaN."""
    return isinstance(value, str)


def _read_saving(job: Mapping[str, Any]) -> float:
    saving = job["verdict"]["saving"]
    return float(saving["cost"]["mean"]) if saving else 0.0


def describe_totals(jobs: Sequence[Mapping[str, Any]], settings: Settings) -> list[dict[str, Any]]:
    """Return per option what all jobs take together in a day, and what it saves against what ran in a month.

    An option that failed on a job has what ran in its place there, and says on how many.
    """
    if not jobs:
        return []
    names = [one["name"] for one in jobs[0]["options"]]
    titles = {one["name"]: one["title"] for one in jobs[0]["options"]}
    ran = {measure: _sum_days(jobs, names[0], measure)[0] for measure in MEASURES}
    price = settings.advise.price_per_slot_hour
    totals = []
    for name in names:
        sums = {measure: _sum_days(jobs, name, measure) for measure in MEASURES}
        row: dict[str, Any] = {"name": name, "title": titles[name], "failed_on": sums["cost"][1]}
        for measure in MEASURES:
            row[measure] = asdict(estimate(sums[measure][0]))
            row[f"{measure}_saved"] = asdict(estimate(ran[measure] - sums[measure][0]))
        row["slots"] = row["slot_hours"]["mean"] / 24.0
        row["money_per_month"] = _scale(row["slot_hours"], price * MONTH_DAYS)
        row["money_saved_per_month"] = _scale(row["slot_hours_saved"], price * MONTH_DAYS)
        totals.append(row)
    return totals


def _sum_days(jobs: Sequence[Mapping[str, Any]], name: str, measure: str) -> tuple[Floats, int]:
    """Return the (D, S) sum over jobs, and on how many the option failed."""
    chosen, failed = [], 0
    for job in jobs:
        by_name = {one["name"]: one for one in job["options"]}
        option = by_name[name]
        if option["failed"]:
            failed, option = failed + 1, job["options"][0]
        chosen.append(option["daily"][measure])
    return np.array(chosen, float).sum(axis=0), failed


def _scale(value: Mapping[str, float], factor: float) -> dict[str, float]:
    return {key: one * factor for key, one in value.items()}


def describe_calibration(jobs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how far predictions were from what came, over all jobs."""
    result = [one["calibration"] for one in jobs]
    costs = [one["costs"] for one in result]
    predicted = sum(one["cost"] or 0.0 for one in costs)
    received = sum(one["cost_came"] or 0.0 for one in costs)
    points = np.array([one["capacity_points"] for one in result], float)
    errors = [abs(one["cost"] / one["cost_came"] - 1.0) for one in costs if one["cost"] and one["cost_came"]]
    return {
        "cost": predicted,
        "cost_came": received,
        "cost_error": predicted / received - 1.0 if received else None,
        "job_errors": sorted(errors),
        "within_tenth": sum(error <= 0.1 for error in errors),
        "late_minutes": sum(one["late_minutes"] or 0.0 for one in costs),
        "late_minutes_came": sum(one["late_minutes_came"] or 0.0 for one in costs),
        "slot_hours": sum(one["slot_hours"] or 0.0 for one in costs),
        "slot_hours_came": sum(one["slot_hours_came"] or 0.0 for one in costs),
        "capacity_error": _mean([one["capacity_error"] for one in result], points),
        "capacity_inside": _mean([one["capacity_inside"] for one in result], points),
        "capacity_points": int(points.sum()),
        "load_error": _mean([one["load_error"] for one in result]),
        "load_below_q90": _mean([one["load_below_q90"] for one in result]),
        "downtime_s": _mean([one["downtime_s"] for one in result if one["rescales"]]),
        "downtime_came_s": _mean([one["downtime_came_s"] for one in result if one["rescales"]]),
        "rescales": sum(one["rescales"] for one in result),
    }


def _mean(values: Sequence[float | None], weights: Floats | None = None) -> float | None:
    """Return the mean of the values that there are."""
    array = np.array([np.nan if value is None else value for value in values], float)
    known = np.isfinite(array)
    if not known.any():
        return None
    return float(np.average(array[known], weights=None if weights is None else np.maximum(weights[known], 1e-9)))
