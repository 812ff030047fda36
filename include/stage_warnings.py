"""What a stage's counts tell that nobody should overlook: input that was not used, and stages that did nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.stage_names import Stage


def list_warnings(stage: str, summary: Mapping[str, Any]) -> list[str]:
    """Return sentences about a stage that has ended well, from the counts of ``<out>/stages/<stage>.json``.

    >>> list_warnings("ingest", {"rows": 100, "quarantined": 2})
    ['2 of 100 lines were quarantined: tidewise quarantine shows them']
    """
    rules = {Stage.INGEST: _of_ingest, Stage.PLAN: _of_plan, Stage.TRAIN: _of_train, Stage.FORECAST: _of_forecast}
    rule = next((each for name, each in rules.items() if name == stage), None)
    return [] if rule is None else [*rule(summary), *list_lost(summary)]


def list_lost(summary: Mapping[str, Any]) -> list[str]:
    """Return sentences about what a stage should have read, found lost, and did without."""
    lost = summary.get("models_lost")
    return [f"models are lost, and older ones in use: {lost}"] if lost else []


def is_empty(stage: str, summary: Mapping[str, Any]) -> bool:
    """Whether a stage has ended well and made nothing: no line, no forecast, no planned job.

    >>> is_empty("ingest", {"rows": 0}), is_empty("ingest", {"rows": 3}), is_empty("report", {})
    (True, False, False)
    """
    name = {Stage.INGEST: "rows", Stage.FORECAST: "forecasts", Stage.PLAN: "jobs"}.get(stage)  # type: ignore[call-overload]
    return name is not None and name in summary and not _count(summary, name)


def _of_ingest(summary: Mapping[str, Any]) -> list[str]:
    rows, result = _count(summary, "rows"), []
    lines, values, files = (_count(summary, f"quarantined{part}") for part in ("", "_values", "_files"))
    if lines:
        result.append(f"{lines} of {rows} lines were quarantined: tidewise quarantine shows them")
    if values:
        result.append(
            f"{values} values of metrics were quarantined, their lines are used: tidewise quarantine shows them"
        )
    if files:
        result.append(f"{files} files could not be read to their end, or are misplaced: tidewise quarantine shows them")
    if is_empty(Stage.INGEST, summary):
        span = f"from {summary.get('start', '?')} to {summary.get('end', '?')}"
        result.append(f"no line {span}: is the raw folder mounted (paths.raw), and does anything collect?")
    return result


def _of_plan(summary: Mapping[str, Any]) -> list[str]:
    result = []
    if is_empty(Stage.PLAN, summary):
        result.append("no job was planned: nothing was ingested of late, or no forecast was made")
    if _count(summary, "refused"):
        result.append(f"jobs without a plan: {summary['refused']}; the report, and tidewise plan, say why")
    return result


def _of_train(summary: Mapping[str, Any]) -> list[str]:
    gate, result = summary.get("gate"), []
    if summary.get("not_in_use"):
        result.append(f"the new models are not in use: {summary['not_in_use']}")
    elif gate in {"failed", "kept"}:
        result.append(f"the new models are not in use: the gate's verdict is {gate}")
    outcomes = {"jobs_kept": "jobs keep the models of an earlier version", "jobs_left_out": "jobs have none"}
    for name, what in outcomes.items():
        if _count(summary, name):
            result.append(f"{_count(summary, name)} {what}: tidewise models show names them")
    if summary.get("refused_by_review"):
        result.append(f"what a person set in MLflow is not followed: {summary['refused_by_review']}")
    return result


def _of_forecast(summary: Mapping[str, Any]) -> list[str]:
    result = []
    if is_empty(Stage.FORECAST, summary):
        result.append("nothing was forecast: no source has a usable rate of late")
    if _count(summary, "stale"):
        result.append(f"{summary['stale']} sources have no rate of late: are their jobs polled?")
    return result


def _count(summary: Mapping[str, Any], name: str) -> int:
    value = summary.get(name)
    return int(value) if isinstance(value, int | float) else 0
