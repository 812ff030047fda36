"""The plan stage on fleets of 100, 300 and 1,000 jobs of 8 operators, a day ahead, within a budget of slots.

Set-up, not timed: graphs, two hours of windows, a day of forecasts and the models of a made-up fleet, whose load has a
wave of its own for each job.  The budget is four fifths of what the jobs ask for without one at their common peak.
"""

from __future__ import annotations

import json
import os
import zlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession

from benchmarks.measurement import Measurement
from benchmarks.pipeline.hourly import CLUSTER, END, environment, submit
from benchmarks.pipeline.packed_models import pack_models
from include import tables
from include.model_registry import CHAMPION
from include.settings import load_settings
from include.stage_names import Stage
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from spark_jobs.lake import Lake, rows_of
from spark_jobs.model_store import ModelStore
from spark_jobs.session import start_session

SIZES = (100, 300, 1_000)
OPERATORS = 8
SLOTS_PER_JOB = 9  # of the budget; the jobs ask for 11 at their peak
PER_SUBTASK_PER_S = 1_000.0
WINDOW_S, BIN_S, HOURS = 300, 300, 24
_NAMES = ("source", *(f"operator-{place}" for place in range(1, OPERATORS)))
_PER_SLOT = "TIDEWISE__CLUSTERS__fleet__SLOTS_TOTAL"


def _ids(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}" * 4


def load_per_s(job: int, hours: np.ndarray) -> np.ndarray:
    """Return the rate of a job's source at some hours after the plan."""
    return np.asarray(5_000.0 + 3_500.0 * np.sin(2 * np.pi * (hours / 24 + 0.1 * (job % 5))))


def models_of(jobs: int) -> FleetBundle:
    """Return the models of the fleet: every operator like ContTune's measured curves."""
    p = np.arange(1, 65)
    mean = PER_SUBTASK_PER_S * p / (1 + 0.02 * (p - 1))
    curve = CapacityCurve(p, mean, 0.03 * mean, p[:16], mean[:16], PER_SUBTASK_PER_S)
    one = JobModels(
        dict.fromkeys(_NAMES, curve),
        dict.fromkeys(_NAMES, 1.0),
        RecoveryModel(40.0, 8.0, 110.0, 20.0, 40.0, 6),
        LatencyModel(np.array([0.2, 0.9]), np.array([50.0, 900.0])),
    )
    return pack_models("made-up", {(CLUSTER, f"job-{job:04}"): one for job in range(jobs)})


def graph_frame(jobs: int) -> pd.DataFrame:
    """Return rows of silver.job_graphs: chains that run at 8."""
    observed = END - timedelta(minutes=1)
    return pd.DataFrame(
        [
            {
                "cluster": CLUSTER,
                "job": f"job-{job:04}",
                "job_id": _ids(f"job-{job:04}"),
                "operator": name,
                "vertex_id": _ids(name),
                "position": place,
                "upstream": [_NAMES[place - 1]] if place else [],
                "ship_strategies": ["HASH"] if place else [],
                "parallelism": 8,
                "max_parallelism": 128,
                "observed_at": observed,
                "date": observed.date(),
                "hour": observed.hour,
            }
            for job in range(jobs)
            for place, name in enumerate(_NAMES)
        ]
    )


def observation_frame(jobs: int) -> pd.DataFrame:
    """Return rows of silver.observations: the last two hours."""
    rows: list[dict[str, Any]] = []
    starts = [END - timedelta(seconds=WINDOW_S * back) for back in range(24, 0, -1)]
    for job in range(jobs):
        rates = load_per_s(job, np.array([(start - END) / timedelta(hours=1) for start in starts]))
        for start, rate in zip(starts, rates.tolist(), strict=True):
            for place, name in enumerate(_NAMES):
                rows.append(
                    {
                        "cluster": CLUSTER,
                        "job": f"job-{job:04}",
                        "job_id": _ids(f"job-{job:04}"),
                        "operator": name,
                        "vertex_id": _ids(name),
                        "window_start": start,
                        "window_s": WINDOW_S,
                        "parallelism": 8,
                        "is_source": place == 0,
                        "observed_processing_rate_per_s": rate,
                        "observed_output_rate_per_s": rate,
                        "true_processing_rate_per_s": 7_000.0,
                        "true_output_rate_per_s": 7_000.0,
                        "target_data_rate_per_s": rate if place == 0 else None,
                        "busy_share": min(rate / 7_000.0, 1.0),
                        "samples": 5,
                        "disturbed": False,
                        "date": start.date(),
                        "hour": start.hour,
                    }
                )
    return pd.DataFrame(rows)


def forecast_frame(jobs: int) -> pd.DataFrame:
    """Return rows of gold.forecasts: a day of bins of each source."""
    bins = np.arange(HOURS * 3600 // BIN_S)
    parts = []
    for job in range(jobs):
        middle = load_per_s(job, bins * BIN_S / 3600)
        part = pd.DataFrame({"bin_start": [END + timedelta(seconds=int(at) * BIN_S) for at in bins]})
        for name, factor in (("q10", 0.92), ("q50", 1.0), ("q90", 1.08), ("q95", 1.1)):
            part[f"{name}_per_s"] = factor * middle
        parts.append(part.assign(job=f"job-{job:04}"))
    known: dict[str, Any] = {
        "as_of": END,
        "cluster": CLUSTER,
        "operator": "source",
        "bin_s": BIN_S,
        "method": "made_up",
    }
    return pd.concat(parts).assign(**known, forecast_version="f0", date=END.date())


def prepare(spark: SparkSession, jobs: int) -> None:
    """Write the tables and the champion of a fleet."""
    settings = load_settings()
    lake = Lake(spark, settings.paths.lake)
    versions = pd.DataFrame([{"as_of": END - timedelta(hours=3), "model_version": "made-up"}])
    frames = (
        (tables.JOB_GRAPHS, graph_frame(jobs)),
        (tables.OBSERVATIONS, observation_frame(jobs)),
        (tables.FORECASTS, forecast_frame(jobs)),
        (tables.MODEL_VERSIONS, versions),
    )
    for table, frame in frames:
        lake.ensure(table)
        rows = rows_of(
            spark, table.columns, [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
        )
        rows.coalesce(1).write.format("delta").mode("append").save(lake.path(table))
    store = ModelStore(settings.mlflow)
    bundle = models_of(jobs)
    with store.run(bundle.model_version, {}):
        store.log_bundle(bundle)
    finished = store.find_finished(bundle.model_version)
    if finished is None:
        raise RuntimeError("MLflow does not show the run as finished")
    store.point(CHAMPION, store.register(finished))


def run(work: Path, sizes: tuple[int, ...] = SIZES) -> list[Measurement]:
    """Measure the plan stage for each size, as the whole spark-submit application."""
    result: list[Measurement] = []
    for jobs in sizes:
        below = work / str(jobs)
        with environment(below):
            os.environ[_PER_SLOT] = str(SLOTS_PER_JOB * jobs)
            try:
                spark = start_session(load_settings(), "benchmark")
                prepare(spark, jobs)
                spark.stop()
                seconds = submit(Stage.PLAN, below, END).seconds
            finally:
                os.environ.pop(_PER_SLOT, None)
        summary = json.loads((below / "out" / "stages" / "plan.json").read_text())
        if summary["refused"] or summary["over_budget"]:
            raise RuntimeError(f"the made-up fleet could not be planned for: {summary}")
        size = f"{jobs:,} jobs x {OPERATORS} operators, budget {SLOTS_PER_JOB * jobs:,} slots"
        result += [
            Measurement(f"plan stage as a whole, {size}", seconds, "s"),
            Measurement(f"plan stage without Spark's start, {size}", float(summary["seconds"]), "s"),
        ]
    return result
