"""A report of made-up jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from spark_jobs.report.page_data import Curve, Fan, JobReport, LoadSeries, Report, Step

AS_OF = datetime(2026, 11, 20, 18, tzinfo=UTC)


def step(status: str = "planned", **changes: object) -> Step:
    values: dict[str, object] = {
        "status": status,
        "apply_at_s": (AS_OF + timedelta(hours=2)).timestamp(),
        "effective_at_s": (AS_OF + timedelta(hours=2, minutes=3)).timestamp(),
        "valid_until_s": (AS_OF + timedelta(hours=6)).timestamp(),
        "parallelism_from": {"Source: orders": 2, "enrich <b>": 6},
        "parallelism_to": {"Source: orders": 2, "enrich <b>": 9},
        "slots_from": 6,
        "slots": 9,
        "expected_load_q90_per_s": 81_300.0,
        "expected_capacity_per_s": 99_000.0,
        "expected_capacity_lower_per_s": 93_000.0,
        "p_late": 0.021,
        "expected_recovery_s": 241.0,
        "lead_time_s": 95.0,
        "slot_hours_saved": -12.0,
        "reason": "load rises & enrich needs 9",
        "refusal": None,
        "outcome": "",
    }
    return Step(**{**values, **changes})  # type: ignore[arg-type]


def job(steps: list[Step], curves: list[Curve] | None = None) -> JobReport:
    past = [AS_OF - timedelta(minutes=5 * back) for back in range(200, 0, -1)]
    ahead = [AS_OF + timedelta(minutes=5 * bin_) for bin_ in range(288)]
    load = LoadSeries(past, [70e3 + 10 * n for n in range(200)], [6.0] * 200)
    fan = Fan(ahead, [60e3] * 288, [70e3] * 288, [80e3] * 288, ["harmonic"], ["only 2 days of history"])
    default = [Curve("enrich <b>", [1, 2, 3, 4], [10e3, 19e3, 27e3, 34e3], [1e3] * 4, [1, 3], [10e3, 27e3])]
    return JobReport("live", "checkout", load, fan, steps, default if curves is None else curves)


def report(*jobs: JobReport) -> Report:
    table = (["cluster", "rows"], [["live", "12 & more"]])
    return Report(AS_OF, "0.1.0+abc", jobs, len(jobs) + 5, table, table, table, table)
