"""A lake of a few jobs, as ingestion, forecast and planning write it, and the page saved from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from include.lake_table import LakeTable
from include.settings import Settings
from include.tables import FORECASTS, OBSERVATIONS, PLANS, QUALITY, Table
from page.curves import Curve
from page.saving import save_page

AS_OF = datetime(2026, 11, 20, 18, tzinfo=UTC)
HOUR = timedelta(hours=1)
CURVE = Curve("enrich <b>", [1, 2, 3, 4], [10e3, 19e3, 27e3, 34e3], [1e3] * 4, [1, 3], [10e3, 27e3])


def step_row(job: str, **changes: Any) -> dict[str, Any]:
    """Return a row of gold.plans."""
    row = {
        "as_of": AS_OF,
        "step_id": f"step of {job[:20]}",
        "cluster": "live",
        "job": job,
        "step_index": 0,
        "status": "planned",
        "apply_at": AS_OF + 2 * HOUR,
        "effective_at": AS_OF + 2 * HOUR + timedelta(minutes=3),
        "valid_until": AS_OF + 6 * HOUR,
        "parallelism_from": {"Source: orders": 2, "enrich <b>": 6},
        "parallelism_to": {"Source: orders": 2, "enrich <b>": 9},
        "slots_from": 6,
        "slots": 9,
        "expected_load_q50_per_s": 70_000.0,
        "expected_load_q90_per_s": 81_300.0,
        "expected_capacity_per_s": 99_000.0,
        "expected_capacity_lower_per_s": 93_000.0,
        "expected_capacity_upper_per_s": 104_000.0,
        "expected_late_minutes": 2.4,
        "day_late_minutes": 3.2,
        "expected_recovery_s": 241.0,
        "slot_hours_saved": -11.85,
        "reason": "load rises & enrich <b> needs 9",
        "policy": "planner",
        "date": AS_OF.date(),
    }
    return row | changes


def refused_row(job: str, **changes: Any) -> dict[str, Any]:
    """Return the row of a plan that was refused."""
    times = dict.fromkeys(("apply_at", "effective_at", "valid_until"))
    return step_row(job, **{"status": "refused", "refusal": "no_model", "slots": None, **times, **changes})


def write_jobs(lake: Path, plans: Sequence[Mapping[str, Any]], others: Iterable[str] = ()) -> None:
    """Write an hour of windows and a forecast of each job that a plan is about, and the plans."""
    jobs = [str(row["job"]) for row in plans] + list(others)
    starts = [AS_OF - timedelta(minutes=5 * back) for back in range(12, 0, -1)]
    window = {"cluster": "live", "window_s": 300, "is_source": True, "parallelism": 6, "operator": "Source: orders"}
    measured = [
        {**window, "job": job, "window_start": at, "target_data_rate_per_s": 70e3, "age_s": 0.02}
        | {"busy_share": 0.7, "pending_records": 100.0, "date": at.date(), "hour": at.hour}
        for job in jobs
        for at in starts
    ]
    quantiles = {"q10_per_s": 60e3, "q50_per_s": 70e3, "q90_per_s": 80e3, "q95_per_s": 82e3}
    forecast = {"as_of": AS_OF, "cluster": "live", "operator": "Source: orders", "bin_s": 300, "date": AS_OF.date()}
    bins = [
        {**forecast, **quantiles, "job": job, "bin_start": AS_OF + timedelta(minutes=5 * place)}
        for job in jobs
        for place in range(24)
    ]
    quality = [{"interval_start": AS_OF - HOUR, "interval_end": AS_OF, "cluster": "live", "rows": len(measured)}]
    tables: list[tuple[Table, Sequence[Mapping[str, Any]]]] = [
        *((OBSERVATIONS, measured), (FORECASTS, bins), (PLANS, plans), (QUALITY, quality))
    ]
    for table, rows in tables:
        LakeTable(str(lake), table).append(rows)


def settings_of(lake: Path, **changes: Any) -> Settings:
    """Return settings whose lake and out folder are one."""
    paths = {"lake": str(lake), "raw": str(lake), "out": str(lake)}
    return Settings.model_validate({"paths": paths, **changes})


def save(lake: Path, curves: Sequence[Curve] = (CURVE,), at: datetime = AS_OF, **changes: Any) -> str:
    """Return the text of the saved page."""
    settings, file = settings_of(lake, **changes), lake / "report.html"
    save_page(settings, {}, at.timestamp(), file, read_curves=lambda *_: curves, code_version="0.1.0+abc")
    return file.read_text(encoding="utf-8")
