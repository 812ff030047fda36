"""Small tables for the tests of plan and apply: jobs ``src -> map`` whose capacity is 10,000 records/s per instance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from delta_tables import write_rows

from benchmarks.pipeline.packed_models import pack_models
from include import tables
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from spark_jobs.lake import Lake

AS_OF = datetime(2026, 11, 20, 18, tzinfo=UTC)
CLUSTER = "c5m"
RUNNING = {"src": 1, "map": 3}


def job_id(job: str) -> str:
    return job.encode().hex().ljust(32, "0")[:32]


def vertex_id(operator: str) -> str:
    return operator.encode().hex().ljust(32, "f")[:32]


def _day(at: datetime) -> dict[str, Any]:
    return {"date": at.date(), "hour": at.hour}


def graph_rows(
    job: str, at: datetime = AS_OF, running: Mapping[str, int] | None = None, cluster: str = CLUSTER
) -> list[dict[str, Any]]:
    observed = at - timedelta(minutes=1)
    return [
        {
            "cluster": cluster,
            "job": job,
            "job_id": job_id(job),
            "operator": operator,
            "vertex_id": vertex_id(operator),
            "position": position,
            "upstream": [["src"]][:position][0] if position else [],
            "ship_strategies": ["HASH"] if position else [],
            "parallelism": parallelism,
            "max_parallelism": 128,
            "observed_at": observed,
            **_day(observed),
        }
        for position, (operator, parallelism) in enumerate((running or RUNNING).items())
    ]


def observation_rows(
    job: str, at: datetime = AS_OF, load: float = 20_000.0, cluster: str = CLUSTER, windows: int = 3
) -> list[dict[str, Any]]:
    starts = [at - timedelta(minutes=5 * (back + 1)) for back in range(windows)]
    return [
        {
            "cluster": cluster,
            "job": job,
            "job_id": job_id(job),
            "operator": operator,
            "vertex_id": vertex_id(operator),
            "window_start": start,
            "window_s": 300,
            "parallelism": RUNNING[operator],
            "is_source": operator == "src",
            "observed_processing_rate_per_s": load,
            "target_data_rate_per_s": load if operator == "src" else None,
            "busy_share": 0.5,
            "samples": 5,
            "disturbed": False,
            **_day(start),
        }
        for start in starts
        for operator in RUNNING
    ]


def busy_rows(job: str, load: float, at: datetime = AS_OF, windows: int = 24) -> list[dict[str, Any]]:
    """Windows of a job whose ``map`` gets ``load`` records/s and does 10,000 an instance; the source holds the rest."""
    done = min(load, 10_000.0 * RUNNING["map"])
    measured = {
        "src": {"busy_share": done / 1e6, "target_data_rate_per_s": load, "true_processing_rate_per_s": 1e6},
        "map": {"busy_share": done / 30_000.0, "true_processing_rate_per_s": 30_000.0, "selectivity": 1.0},
    }
    held = 1.0 - measured["src"]["busy_share"] if done < load else 0.0
    rows = observation_rows(job, at, load, windows=windows)
    for row in rows:
        own = measured[row["operator"]]
        is_source = row["operator"] == "src"
        backpressured = held if is_source else 0.0
        row.update(
            own
            | {
                "observed_processing_rate_per_s": done,
                "observed_output_rate_per_s": done,
                "true_output_rate_per_s": own["true_processing_rate_per_s"],
                "backpressured_share": backpressured,
                "idle_share": 1.0 - own["busy_share"] - backpressured,
                "pending_records": 60_000.0 if is_source and done < load else (0.0 if is_source else None),
                "age_s": 2.0 if is_source and done < load else (0.1 if is_source else None),
            }
        )
    return rows


def forecast_rows(
    job: str, rates: Iterable[float], at: datetime = AS_OF, source: str = "src", cluster: str = CLUSTER
) -> list[dict[str, Any]]:
    """One rate per hour of the horizon, in bins of an hour; q90 is 1.1 times the median."""
    return [
        {
            "as_of": at,
            "cluster": cluster,
            "job": job,
            "operator": source,
            "bin_start": at + timedelta(hours=hour),
            "bin_s": 3600,
            "q10_per_s": 0.9 * rate,
            "q50_per_s": rate,
            "q90_per_s": 1.1 * rate,
            "q95_per_s": 1.15 * rate,
            "method": "seasonal_naive",
            "forecast_version": "f0",
            "date": at.date(),
        }
        for hour, rate in enumerate(rates)
    ]


def job_models() -> JobModels:
    p = np.arange(1, 65)
    linear = CapacityCurve(p, 10_000.0 * p, 0.0 * p, p.copy(), 10_000.0 * p, 10_000.0)
    free = CapacityCurve(p, 1e6 * p, 0.0 * p, p.copy(), 1e6 * p, 1e6)
    recovery = RecoveryModel(20.0, 2.0, 40.0, 4.0, 30.0, 5)
    return JobModels(
        {"src": free, "map": linear}, {"src": 1.0, "map": 1.0}, recovery, LatencyModel(np.zeros(0), np.zeros(0))
    )


def fleet(*jobs: str, cluster: str = CLUSTER) -> FleetBundle:
    return pack_models("m0", {(cluster, job): job_models() for job in jobs})


def model_row(at: datetime = AS_OF - timedelta(hours=10)) -> dict[str, Any]:
    return {"as_of": at, "model_version": "m0", "jobs": 1, "operators": 2, "gate": "first"}


def write_fleet(lake: Lake, loads: Mapping[str, Iterable[float]], cluster: str = CLUSTER) -> None:
    """Write state and forecast of healthy jobs: job -> a rate per hour."""
    write_rows(lake, tables.JOB_GRAPHS, [row for job in loads for row in graph_rows(job, cluster=cluster)])
    write_rows(lake, tables.OBSERVATIONS, [row for job in loads for row in observation_rows(job, cluster=cluster)])
    forecasts = [row for job, rates in loads.items() for row in forecast_rows(job, rates, cluster=cluster)]
    write_rows(lake, tables.FORECASTS, forecasts)
    write_rows(lake, tables.MODEL_VERSIONS, [model_row()])
