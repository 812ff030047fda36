"""The comparison of policies on one job's history."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.broadcast import Broadcast

from include.domain.graph import GraphError
from include.settings import Settings
from lab.backtest.comparison import (
    DAY_BINS,
    FLOOR,
    REFERENCES,
    HistoryError,
    Result,
    Spans,
    compare,
    recommend,
)
from lab.stages.inputs.skipped_jobs import BacktestSkip
from lab.stages.inputs.subjects import NoLoadError, build_subject
from models.bundle.fleet_bundle import BundleError, FleetBundle

log = logging.getLogger(__name__)
ROW_SCHEMA = (
    "cluster STRING, job STRING, policy STRING, days DOUBLE, learning_days DOUBLE, note STRING, "
    "rescales_per_day DOUBLE, late_minutes_per_day DOUBLE, lag_record_seconds DOUBLE, slot_hours DOUBLE, cost DOUBLE, "
    "cost_vs_clairvoyant DOUBLE, recommended BOOLEAN, in_use BOOLEAN, error STRING, skipped STRING"
)
COLUMNS = [column.split()[0] for column in ROW_SCHEMA.split(", ")]
ERROR_LENGTH = 500


@dataclass(frozen=True, slots=True)
class BacktestTask:
    """Common inputs of every job's comparison; shipped to the executors once.

    Attributes:
        settings: of the run.
        first_bin_s, bins: the history that is used, in bins of :data:`lab.backtest.comparison.BIN_S`.
        bundle: models of the fleet.
    """

    settings: Settings
    first_bin_s: int
    bins: int
    bundle: Broadcast[FleetBundle]


def make_backtester(task: BacktestTask) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return the function that Spark applies to the graph and the sources of each job."""

    def backtest(jobs: pd.DataFrame) -> pd.DataFrame:
        rows = [row for state in jobs.to_dict("records") for row in job_rows(task, state)]
        return pd.DataFrame(rows, columns=COLUMNS, dtype=object)

    return backtest


def job_rows(task: BacktestTask, state: dict[Any, Any]) -> list[dict[str, object]]:
    """Return a row per policy, or the one row of a job that cannot be compared, with the name of why in ``skipped``."""
    key = {"cluster": state["cluster"], "job": state["job"]}
    settings = task.settings
    in_use = settings.planner.policy_of(state["cluster"], state["job"])
    names = list(dict.fromkeys([*settings.backtest.policies, in_use, *REFERENCES]))
    try:
        subject = build_subject(settings, task.bundle.value, task.first_bin_s, task.bins, state)
        spans, results = compare(subject, names, settings)
    except BundleError:
        return [key | {"skipped": str(BacktestSkip.NO_MODEL)}]
    except HistoryError:
        return [key | {"skipped": str(BacktestSkip.SHORT_HISTORY)}]
    except NoLoadError:
        return [key | {"skipped": str(BacktestSkip.NO_LOAD)}]
    except GraphError:
        return [key | {"skipped": str(BacktestSkip.UNKNOWN_OPERATOR)}]
    except Exception as error:  # one job must not keep the others from being compared
        log.exception("backtest of %s/%s", *key.values())
        failed = [Result(name, None, repr(error)) for name in names]
        return [key | row for row in _rows(failed, None, in_use, settings)]
    return [key | row for row in _rows(results, spans, in_use, settings)]


def _rows(results: Sequence[Result], spans: Spans | None, in_use: str, settings: Settings) -> list[dict[str, object]]:
    floor = next((one.score.cost for one in results if one.policy == FLOOR and one.score is not None), None)
    best = recommend(results, in_use, settings.backtest.margin)
    shared = _span_columns(spans, settings)
    rows: list[dict[str, object]] = []
    for one in results:
        row = shared | {
            "policy": one.policy,
            "recommended": one.policy == best,
            "in_use": one.policy == in_use,
            "error": one.error[:ERROR_LENGTH] if one.error else None,
        }
        if one.score is not None:
            row |= {
                "rescales_per_day": one.score.rescales_per_day,
                "late_minutes_per_day": one.score.late_minutes_per_day,
                "lag_record_seconds": one.score.lag_record_seconds,
                "slot_hours": one.score.slot_hours,
                "cost": one.score.cost,
                "cost_vs_clairvoyant": one.score.cost / floor if floor else None,
            }
        rows.append(row)
    return rows


def _span_columns(spans: Spans | None, settings: Settings) -> dict[str, object]:
    """Return how much was scored and learnt from, and a note where the history was shorter than the settings ask."""
    if spans is None:
        return {}
    days, learning = spans.scored / DAY_BINS, spans.learning / DAY_BINS
    options = settings.backtest
    note = None
    if days < options.days - 1.0 / 24.0 or learning < options.learning_days:
        note = (
            f"{(spans.before + spans.learning + spans.scored) / DAY_BINS:.1f} days of history: {days:.1f} days scored, "
            f"{learning:.1f} days to learn from before, {options.days} and {options.learning_days:g} are configured"
        )
    return {"days": days, "learning_days": learning, "note": note}
