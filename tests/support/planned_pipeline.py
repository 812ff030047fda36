"""The plan stage's and the learn stage's work on one simulated job, without Spark: a row of inputs in, rows out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
from pyspark.broadcast import Broadcast
from simulated_pipeline import CLUSTER, Pipeline

from benchmarks.pipeline.packed_models import pack_models
from controller.view.plan_rows import JobPlan
from include.tables.plan_row import PlanRow
from lab.stages.learn.job_learning import PolicyLearnTask, job_row
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import JobModels
from models.policies.observations import MEASURES, Observations
from models.scheduling.demand import SourceForecast
from spark_jobs.newest_rows import QUANTILES
from spark_jobs.plan.job_plan import PlanTask, plan_job
from spark_jobs.plan_inputs.job_state import JobState


@dataclass(frozen=True)
class PlanInputs:
    """What the nightly training and the forecast stage had made by the time of a plan.

    Attributes:
        models, forecast: None for not yet.
        trained_s: when the models were trained, epoch seconds.
        ingested_s: end of the last window that was ingested.
    """

    models: JobModels | None
    forecast: SourceForecast | None
    trained_s: int | None
    ingested_s: int


@dataclass
class Planning:
    """Plans a pipeline's job, and lets its policy learn after a training.

    Args:
        pipeline: whose replies the windows come from.
        policy: name.
        learns: whether it learns by night.
    """

    pipeline: Pipeline
    policy: str
    learns: bool
    memory: str | None = None
    learned_s: int | None = None
    plan: JobPlan | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)

    def make(self, now_s: int, given: PlanInputs) -> None:
        """Make the plan of a moment."""
        job = self.pipeline.job.spec.name
        bundle = None if given.models is None else pack_models("m", {(CLUSTER, job): given.models})
        broadcast = None if bundle is None else cast("Broadcast[FleetBundle]", SimpleNamespace(value=bundle))
        if self.learns and broadcast is not None and given.trained_s not in {None, self.learned_s}:
            self._learn(broadcast, given.trained_s or 0)
        as_of = datetime.fromtimestamp(now_s, UTC)
        self.rows = plan_job(PlanTask(self.pipeline.settings, as_of, broadcast), self._state(now_s, given))
        self.memory = self.rows[0].get("memory") or self.memory
        self.plan = _plan_of(now_s, given.ingested_s, self.rows)

    def _learn(self, broadcast: Broadcast[FleetBundle], trained_s: int) -> None:
        self.learned_s = trained_s
        task = PolicyLearnTask(self.pipeline.settings, datetime.fromtimestamp(trained_s, UTC), broadcast)
        windows = pd.DataFrame(_columns(self._names(), self.pipeline.observations(trained_s)))
        state = {"cluster": CLUSTER, "job": self.pipeline.job.spec.name, "operators": json.dumps(self._operators())}
        learned = job_row(task, state, windows).get("memory")
        self.memory = self.memory if learned is None else str(learned)

    def _names(self) -> tuple[str, ...]:
        return self.pipeline.job.spec.graph().names

    def _operators(self) -> list[dict[str, Any]]:
        (observed,) = self.pipeline.history.jobs()
        assert observed.graph is not None
        return [
            {
                "operator": one.name,
                "upstream": list(one.upstream),
                "parallelism": observed.running[one.name],
                "max_parallelism": one.max_parallelism,
            }
            for one in observed.graph.operators
        ]

    def _state(self, now_s: int, given: PlanInputs) -> JobState:
        (observed,) = self.pipeline.history.jobs()
        observations = self.pipeline.observations(given.ingested_s)
        within = observations.since(given.ingested_s - 3600 * self.pipeline.settings.planner.observed_h)
        return JobState(
            cluster=CLUSTER,
            job=observed.job,
            job_id=observed.job_id,
            operators=self._operators(),
            seen_at_s=now_s,
            observed_until_s=given.ingested_s,
            observed_after_s=None,
            windows=_columns(self._names(), within),
            memory=self.memory,
            memory_policy=self.policy,
            bins=None if given.forecast is None else _bins(given.forecast),
            forecast_as_of_s=None if given.forecast is None else given.ingested_s,
            forecast_version=None,
        )


def _columns(names: tuple[str, ...], windows: Observations) -> dict[str, Any]:
    """Return the windows as columns of rows, one per operator and window."""
    count, width = windows.parallelism.shape
    outstanding = windows.outstanding_records
    return {
        "operator": np.tile(np.array(names, object), count),
        "window_start_s": np.repeat(windows.window_start_s, width),
        "window_s": np.full(count * width, windows.window_s),
        "parallelism": windows.parallelism.ravel(),
        "disturbed": np.repeat(windows.disturbed, width),
        **{name: getattr(windows, name).ravel() for name in MEASURES},
        "age_s": windows.latency_ms.ravel() / 1000.0,
        "outstanding_records": np.full(count * width, np.nan) if outstanding is None else outstanding.ravel(),
    }


def _bins(forecast: SourceForecast) -> dict[str, Any]:
    """Return a forecast as columns of rows, one per source and bin."""
    names, bins = list(forecast.quantiles), forecast.bins
    starts = forecast.start_s + forecast.bin_s * np.arange(bins)
    columns = {
        level: np.concatenate([forecast.quantiles[name][place] for name in names])
        for place, level in enumerate(QUANTILES)
    }
    return {
        "operator": np.repeat(np.array(names, object), bins),
        "bin_start_s": np.tile(starts, len(names)),
        "bin_s": np.full(bins * len(names), forecast.bin_s),
        "fallback": np.full(bins * len(names), forecast.fallback, object),
        **columns,
    }


def _plan_of(now_s: int, ingested_s: int, rows: list[dict[str, Any]]) -> JobPlan:
    """Return the plan as the controller reads it from the table."""
    steps = tuple(PlanRow.of(row) for row in rows if row["status"] == "planned")
    return JobPlan(
        as_of_s=float(now_s),
        steps=steps,
        forecast_version=None,
        observations_until_s=float(ingested_s),
    )
