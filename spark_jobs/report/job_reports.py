"""The report's sections per job, from rows already reduced to what is drawn."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from include.settings import Settings
from include.short_names import shorten_name
from models.bundle import FleetBundle
from spark_jobs.model_store import NoChampionError, load_bundle
from spark_jobs.report.control_log import logged_operators, read_lines
from spark_jobs.report.figures import visible_curve
from spark_jobs.report.outcomes import list_outcomes, measure_outcome, policy_costs
from spark_jobs.report.page_data import CarriedOut, Curve, Fan, JobReport, LoadSeries, Step

log = logging.getLogger(__name__)
CURVE_REACH = 1.6  # a curve is drawn to this many times the highest observed parallelism


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of the jobs shown with ``cluster`` and ``job``.

    Attributes:
        plan: steps of the newest plan with their outcomes.
        load: bins of the last days.
        forecast, earlier: bins of the newest forecast, and of those made within the hour before bins that are over.
        due: steps of earlier plans that were due.
        carried_out: how many steps were due, and how many of them went out as planned.
        rescales: and restarts of the last days.
        backtests: of the newest comparison of policies.
        log: of the controller, of the last day.
    """

    plan: pd.DataFrame
    load: pd.DataFrame
    forecast: pd.DataFrame
    earlier: pd.DataFrame
    due: pd.DataFrame
    carried_out: pd.DataFrame
    rescales: pd.DataFrame
    backtests: pd.DataFrame
    log: pd.DataFrame


def job_reports(settings: Settings, as_of: datetime, rows: Rows) -> list[JobReport]:
    """Put everything about each job together, the jobs with the most change first."""
    bundle = _champion(settings)
    loads, fans, earlier = (dict(_by_job(frame)) for frame in (rows.load, rows.forecast, rows.earlier))
    due, rescales, backtests = (dict(_by_job(frame)) for frame in (rows.due, rows.rescales, rows.backtests))
    logged, carried_out = dict(_by_job(rows.log)), dict(_by_job(rows.carried_out))
    reports = []
    for (cluster, job), plan in _by_job(rows.plan):
        key = (cluster, job)
        load, events = loads.get(key, rows.load.iloc[:0]), rescales.get(key, rows.rescales.iloc[:0])
        steps = [Step.of(row, outcome=row["outcome"]) for row in plan.to_dict("records")]
        try:
            report = JobReport(
                cluster,
                job,
                _load(load),
                _fan(fans.get(key, rows.forecast.iloc[:0])),
                steps,
                _curves(bundle, cluster, job),
                past_fan=_fan(earlier[key]) if key in earlier else None,
                outcomes=list_outcomes(due[key], load, events, as_of) if key in due else [],
                realised=measure_outcome(load, events),
                policies=policy_costs(backtests[key]) if key in backtests else [],
                log=read_lines(logged[key]) if key in logged else [],
                logged_operators=logged_operators(logged[key]) if key in logged else [],
                warnings=_union_texts(plan["warning"]),
                carried_out=_carried_out(carried_out[key]) if key in carried_out else None,
            )
        except Exception:  # one job's rows must not keep the others from the page
            log.exception("report of %s/%s: its steps alone are shown", cluster, shorten_name(job))
            report = JobReport(cluster, job, _load(rows.load.iloc[:0]), _fan(rows.forecast.iloc[:0]), steps, [])
        reports.append(report)
    return sorted(reports, key=lambda report: (-len(report.planned), report.cluster, report.job))


def _by_job(frame: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    for (cluster, job), rows in frame.groupby(["cluster", "job"]):  # type: ignore[misc]
        yield (str(cluster), str(job)), rows


def _carried_out(rows: pd.DataFrame) -> CarriedOut:
    return CarriedOut(int(rows["due"].iloc[0]), int(rows["as_planned"].iloc[0]))


def _champion(settings: Settings) -> FleetBundle | None:
    try:
        return load_bundle(settings)
    except NoChampionError:
        return None  # the page says so: every job is refused with no_model


def _timestamp(value: Any) -> datetime | None:
    return None if pd.isna(value) else pd.Timestamp(value).tz_localize(UTC).to_pydatetime()


def _timestamps(values: pd.Series) -> list[datetime]:
    return list(values.dt.tz_localize(UTC).dt.to_pydatetime())


def _text(value: Any) -> str | None:
    return None if pd.isna(value) else str(value)


def _load(rows: pd.DataFrame) -> LoadSeries:
    if rows.empty:
        return LoadSeries([], [], [])
    slots, late = (rows[name].astype(float).tolist() for name in ("slots", "late_share"))
    return LoadSeries(_timestamps(rows["bin"]), rows["rate_per_s"].tolist(), slots, late)


def _fan(rows: pd.DataFrame) -> Fan:
    if rows.empty:
        return Fan([], [], [], [], [], [])
    return Fan(
        _timestamps(rows["bin_start"]),
        rows["q10_per_s"].tolist(),
        rows["q50_per_s"].tolist(),
        rows["q90_per_s"].tolist(),
        _union(rows["methods"]),
        _union(rows["fallback_reasons"]),
    )


def _union(lists: pd.Series) -> Sequence[str]:
    return sorted({str(entry) for entries in lists for entry in entries})


def _union_texts(texts: pd.Series) -> Sequence[str]:
    return sorted({str(text) for text in texts.dropna()})


def _parallelism(value: Any) -> dict[str, int]:
    return {str(operator): int(p) for operator, p in dict(value).items()} if value is not None else {}


def _curves(bundle: FleetBundle | None, cluster: str, job: str) -> list[Curve]:
    if bundle is None or (cluster, job) not in bundle.jobs():
        return []
    return [
        visible_curve(
            Curve(
                operator,
                curve.parallelism.tolist(),
                curve.mean_per_s.tolist(),
                curve.sd_per_s.tolist(),
                curve.observed.tolist(),
                curve.observed_per_s.tolist(),
            ),
            CURVE_REACH,
        )
        for operator, curve in bundle.for_job(cluster, job).capacity.items()
    ]
