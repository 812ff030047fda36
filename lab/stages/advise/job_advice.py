"""The appraisal of one job as Spark runs it: a row in, one JSON text out."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from include.settings import Settings
from lab.advice.appraisal import Replayed, replay
from lab.advice.calibration import Measured, calibrate
from lab.advice.history import History
from lab.advice.objective import describe_goals
from lab.advice.verdict import judge, subtract, title_of
from lab.backtest.subject import DAY_BINS, HOUR_BINS, Subject
from lab.simulation.spec import SpecError
from lab.stages.inputs.each_job import ERROR_LENGTH, JobTask, name_skip
from lab.stages.inputs.skipped_jobs import BacktestSkip
from lab.stages.inputs.what_ran import list_structs
from models.intervals import estimate

log = logging.getLogger(__name__)
ROW_SCHEMA = "cluster STRING, job STRING, skipped STRING, why STRING, appraisal STRING"
FAILED, _NOT_LEARNT = "failed", "nothing was learnt of it before the days that are appraised"


def advise_job(task: JobTask, state: dict[Any, Any]) -> list[dict[str, object]]:
    """Return the row of a job, or why it is left out."""
    key = {"cluster": state["cluster"], "job": state["job"]}
    try:
        return [key | {"appraisal": json.dumps(tidy(appraise(task, task.read_subject(state), state)))}]
    except Exception as error:  # one job must not keep the others from being appraised
        skip = BacktestSkip.UNKNOWN_OPERATOR if isinstance(error, SpecError) else name_skip(error)
        if skip is None:
            log.exception("appraisal of %s/%s", *key.values())
        known = _NOT_LEARNT if skip is BacktestSkip.NO_MODEL else str(error)
        why = repr(error) if skip is None else known
        return [key | {"skipped": str(skip or FAILED), "why": why[:ERROR_LENGTH]}]


def appraise(task: JobTask, subject: Subject, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything that the page says of a job, as values of JSON."""
    history = task.read_history(subject, state)
    result = replay(subject, history, task.settings)
    measured = [Measured(**dict(_fields(one))) for one in list_structs(state["capacity"])]
    verdict = judge(result.options)
    return {
        "days": result.spans.days,
        "first_s": result.first_s,
        "slots_max": subject.slots_max,
        "load": describe_load(subject, result.spans.days),
        "ran": describe_ran(history, result),
        "operators": list(subject.graph.names),
        "options": [describe_option(result, place) for place in range(len(result.options))],
        "calibration": asdict(calibrate(subject, history, result, measured)),
        "verdict": asdict(verdict) | {"is_against": verdict.advice.is_against},
        "curves": [asdict(one) for one in result.curves],
        "objective": describe_objective(task.settings, subject, result),
    }


def describe_objective(settings: Settings, subject: Subject, result: Replayed) -> dict[str, Any] | None:
    """Return what an objective that is asked for takes more in a day; negative: less."""
    if result.objective is None:
        return None
    with_it, without = result.objective
    goals, usual = settings.advise.objectives[subject.key], settings.planner.costs.recovery_probability
    return {"text": describe_goals(goals, usual), **asdict(subtract(without, with_it))}


def describe_load(subject: Subject, days: int) -> dict[str, Any]:
    """Return mean, peak and hourly means of the appraised days' load, all sources together."""
    loads = subject.rates_per_s[-days * DAY_BINS :].sum(axis=1)
    hourly = loads[: len(loads) // HOUR_BINS * HOUR_BINS].reshape(-1, HOUR_BINS).mean(axis=1)
    return {"mean_per_s": loads.mean(), "peak_per_s": loads.max(), "hourly_per_s": hourly.round(1)}


def describe_ran(history: History, result: Replayed) -> dict[str, Any]:
    """Return what was measured of a day of the appraised ones."""
    day = asdict(history.measure_day(result.first_s, result.spans.days))
    return {"slots": day.pop("slot_hours") / 24.0, "measured_share": day.pop("share"), **day}


def describe_option(result: Replayed, place: int) -> dict[str, Any]:
    """Return the figures of an option: a day's means with intervals, and what it saves against what ran."""
    option, ran = result.options[place], result.options[0]
    reported: dict[str, Any] = {"name": option.name, "title": title_of(option.name), "detail": option.detail}
    if option.costs is None:
        return reported | {"failed": True}
    costs = option.costs
    reported |= {
        "failed": False,
        "slots": costs.slot_hours.mean() / 24.0,
        "slot_hours": asdict(estimate(costs.slot_hours)),
        "late_minutes": asdict(estimate(costs.late_minutes)),
        "rescales": asdict(estimate(costs.rescales)),
        "cost": asdict(estimate(costs.cost)),
        "hourly_slots": option.slots.round(2),
        "daily": {name: value.round(3) for name, value in asdict(costs).items()},
    }
    if option.steps is not None:
        reported["steps"] = {"at_s": option.steps[0], "parallelism": option.steps[1]}
    if place and ran.costs is not None:
        reported["saving"] = asdict(subtract(costs, ran.costs))
    return reported


def tidy(value: Any) -> Any:
    """Return a value as JSON has it: arrays as lists, no number that is none."""
    if isinstance(value, Mapping):
        return {str(key): tidy(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return tidy(value.tolist())
    if isinstance(value, list | tuple):
        return [tidy(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _fields(one: Any) -> dict[str, Any]:
    return dict(one) if isinstance(one, Mapping) else dict(one.asDict())
