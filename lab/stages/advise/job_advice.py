"""The appraisal of one job as Spark runs it: a row in, one JSON text out."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from pyspark.broadcast import Broadcast

from include.domain.graph import GraphError
from include.settings import Settings
from lab.advice.appraisal import Replayed, replay
from lab.advice.calibration import Measured, calibrate
from lab.advice.history import History
from lab.advice.verdict import Verdict, judge, subtract, title_of
from lab.backtest.comparison import BIN_S, DAY_BINS, HistoryError, Subject
from lab.replay.conditions import Prices
from lab.simulation.spec import SpecError
from lab.stages.inputs.subjects import NoLoadError, build_subject
from lab.stages.inputs.what_ran import Followed, build_history, list_structs
from models.bundle.fleet_bundle import BundleError, FleetBundle
from models.intervals import estimate

log = logging.getLogger(__name__)
ROW_SCHEMA = "cluster STRING, job STRING, skipped STRING, why STRING, appraisal STRING"
COLUMNS = [column.split()[0] for column in ROW_SCHEMA.split(", ")]
HOUR_BINS = 3600 // BIN_S


@dataclass(frozen=True, slots=True)
class AdviceTask:
    """Common inputs of every job's appraisal; shipped to the executors once.

    Attributes:
        settings: of the run.
        first_bin_s, bins: of the load's history.
        followed: bins in which what ran is followed.
        bundle: models of the fleet, trained before the days that are appraised.
    """

    settings: Settings
    first_bin_s: int
    bins: int
    followed: Followed
    bundle: Broadcast[FleetBundle]


def make_adviser(task: AdviceTask) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return the function that Spark applies to the inputs of each job."""

    def advise(jobs: pd.DataFrame) -> pd.DataFrame:
        rows = [advise_job(task, state) for state in jobs.to_dict("records")]
        return pd.DataFrame(rows, columns=COLUMNS, dtype=object)

    return advise


def advise_job(task: AdviceTask, state: dict[Any, Any]) -> dict[str, object]:
    """Return the row of a job, or why it is left out."""
    key = {"cluster": state["cluster"], "job": state["job"]}
    try:
        subject = build_subject(task.settings, task.bundle.value, task.first_bin_s, task.bins, state)
        result = appraise(task, subject, state)
    except BundleError:
        return key | {"skipped": "no_model", "why": "nothing was learnt of it before the days that are appraised"}
    except HistoryError as error:
        return key | {"skipped": "short_history", "why": str(error)}
    except NoLoadError as error:
        return key | {"skipped": "no_load", "why": str(error)}
    except (GraphError, SpecError) as error:
        return key | {"skipped": "unknown_operator", "why": str(error)}
    except Exception as error:  # one job must not keep the others from being appraised
        log.exception("appraisal of %s/%s", *key.values())
        return key | {"skipped": "failed", "why": repr(error)[:500]}
    return key | {"appraisal": json.dumps(tidy(result))}


def appraise(task: AdviceTask, subject: Subject, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything that the page says of a job, as values of JSON."""
    paid = task.settings.taskmanager_slots.get(subject.cluster, 1)
    history = build_history(subject.graph, task.followed, state, paid)
    result = replay(subject, history, task.settings)
    costs = task.settings.planner.for_job(subject.cluster, subject.job).costs
    prices = Prices(costs.resource_weight, costs.late_weight, costs.rescale_weight, costs.late_after_s)
    measured = [Measured(**dict(_fields(one))) for one in list_structs(state["capacity"])]
    return {
        "days": result.days,
        "first_s": result.first_s,
        "slots_max": subject.slots_max,
        "load": describe_load(subject, result),
        "ran": describe_ran(history, result),
        "operators": list(subject.graph.names),
        "options": [describe_option(result, place) for place in range(len(result.options))],
        "calibration": asdict(calibrate(subject, history, result, measured, prices)),
        "verdict": describe_verdict(judge(result.options)),
        "curves": [asdict(one) for one in result.curves],
        "objective": None if result.objective is None else asdict(result.objective),
    }


def describe_load(subject: Subject, result: Replayed) -> dict[str, Any]:
    """Return mean, peak and hourly means of the appraised days' load, all sources together."""
    loads = (
        subject.rates_per_s[-result.days * DAY_BINS :].sum(axis=1) if result.days else subject.rates_per_s.sum(axis=1)
    )
    hourly = loads[: len(loads) // HOUR_BINS * HOUR_BINS].reshape(-1, HOUR_BINS).mean(axis=1)
    return {"mean_per_s": loads.mean(), "peak_per_s": loads.max(), "hourly_per_s": hourly.round(1)}


def describe_ran(history: History, result: Replayed) -> dict[str, Any]:
    """Return what was measured of the appraised days, per day; late minutes of the time in which they are known."""
    first = round((result.first_s - history.start_s) / BIN_S)
    span = slice(first, first + result.days * DAY_BINS)
    slots, late = history.slots[span], history.late_s[span]
    share = float(np.isfinite(late).mean()) if len(late) else 0.0
    return {
        "slots": np.nanmean(slots) if np.isfinite(slots).any() else None,
        "late_minutes": float(np.nansum(late)) / 60.0 / max(share * result.days, 1e-9),
        "rescales": history.count_by_day(history.rescale_s, result.first_s, result.days).mean(),
        "failures": history.count_by_day(history.failure_s, result.first_s, result.days).mean(),
        "measured_share": share,
    }


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


def describe_verdict(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as values of JSON."""
    return asdict(verdict) | {"is_against": verdict.advice.is_against}


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
