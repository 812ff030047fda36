"""What one job's last days would have cost under each policy, and what they cost beside the least that was possible."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from include import tables
from include.settings import Settings
from lab.advice.certificate import certify
from lab.backtest.comparison import FLOOR, REFERENCES, Result, Spans, compare, recommend
from lab.backtest.subject import DAY_BINS
from lab.stages.inputs.each_job import ERROR_LENGTH, JobTask, name_skip

log = logging.getLogger(__name__)
_OF_THE_RUN = ("as_of", "model_version", "code_version", "date")
_COLUMNS = {**tables.BACKTESTS.columns, **tables.CERTIFICATES.columns, "left_out": "STRING"}
ROW_SCHEMA = ", ".join(f"{name} {type_}" for name, type_ in _COLUMNS.items() if name not in _OF_THE_RUN)
"""Of a row per policy, and of one without a policy: the job's certificate, and why policies are not compared on it."""
_FIGURES = ("days", "measured_share", "least", "least_low", "least_high", "ratio", "ratio_low", "ratio_high", "regret")
_DAY = ("slot_hours", "late_minutes", "rescales")


def cost_job(task: JobTask, state: dict[Any, Any]) -> list[dict[str, object]]:
    """Return the rows of a job."""
    key = {"cluster": state["cluster"], "job": state["job"]}
    rows, skip = _compare_policies(task, state)
    return [key | row for row in (*rows, _certify_days(task, state) | {"left_out": skip})]


def _compare_policies(task: JobTask, state: Mapping[Any, Any]) -> tuple[list[dict[str, object]], str | None]:
    """Return a row per policy, or why there is none."""
    settings = task.settings
    in_use = settings.planner.policy_of(state["cluster"], state["job"])
    names = list(dict.fromkeys([*settings.backtest.policies, in_use, *REFERENCES]))
    shared: dict[str, object] = {}
    try:
        spans, results = compare(task.read_subject(state), names, settings)
        shared = _describe_spans(spans, settings)
    except Exception as error:  # one job must not keep the others from being compared
        if (skip := name_skip(error)) is not None:
            return [], str(skip)
        log.exception("backtest of %s/%s", state["cluster"], state["job"])
        results = [Result(name, None, repr(error)) for name in names]
    floor = next((one.score.cost for one in results if one.policy == FLOOR and one.score is not None), None)
    best = recommend(results, in_use, settings.backtest.margin)
    rows = []
    for one in results:
        row = shared | {"policy": one.policy, "recommended": one.policy == best, "in_use": one.policy == in_use}
        row["error"] = one.error[:ERROR_LENGTH] if one.error else None
        if one.score is not None:
            row |= asdict(one.score) | {"cost_vs_clairvoyant": one.score.cost / floor if floor else None}
        rows.append(row)
    return rows, None


def _describe_spans(spans: Spans, settings: Settings) -> dict[str, object]:
    """Return how much was scored and learnt from, and a note where the history was shorter than the settings ask."""
    days, learning = spans.scored / DAY_BINS, spans.learning / DAY_BINS
    options = settings.backtest
    note = None
    if days < options.days - 1.0 / 24.0 or learning < options.learning_days:
        note = (
            f"{(spans.before + spans.learning + spans.scored) / DAY_BINS:.1f} days of history: {days:.1f} days scored, "
            f"{learning:.1f} days to learn from before, {options.days} and {options.learning_days:g} are configured"
        )
    return {"days": days, "learning_days": learning, "note": note}


def _certify_days(task: JobTask, state: Mapping[Any, Any]) -> dict[str, object]:
    """Return the figures of a job's certificate, or why it has none."""
    try:
        subject = task.read_subject(state)
        made = certify(subject, task.read_history(subject, state), task.settings)
    except ValueError as error:  # too little is known of it: the message says what
        return {"skipped": str(error)[:ERROR_LENGTH]}
    except Exception as error:  # one job must not keep the others from theirs
        log.exception("certificate of %s/%s", state["cluster"], state["job"])
        return {"skipped": repr(error)[:ERROR_LENGTH]}
    return {
        **{name: getattr(made, name) for name in _FIGURES},
        **{name: getattr(made.ran, name) for name in (*_DAY, "cost")},
        **{f"best_{name}": getattr(made.best, name) for name in _DAY},
        "reason": made.reason or None,
    }
