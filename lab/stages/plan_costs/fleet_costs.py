"""What last week's plans would have cost by a challenger's models and by the champion's, on a sample of the jobs."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
from pyspark.broadcast import Broadcast

from include.settings import Settings
from include.utc import format_utc
from lab.advice.plan_costs import (
    CHALLENGER,
    CHAMPION,
    LEVEL,
    FleetDifference,
    OtherStep,
    PlanCosts,
    compare_plans,
    sample_jobs,
    summarise_costs,
)
from lab.replay.replay_run import CandidateError
from lab.simulation.spec import SpecError
from lab.stages.inputs.each_job import JobTask, name_skip, read_jobs
from models.bundle.fleet_bundle import FleetBundle, JobKey
from models.scheduling.figures import format_count
from spark_jobs.lake import Lake
from spark_jobs.newest_rows import JOB
from spark_jobs.plan_inputs.job_state import placed_of

log = logging.getLogger(__name__)
BUDGET_S = 270.0  # of each core, so that the whole takes five minutes; jobs for which no time is left are left out
_SCHEMA = "cluster STRING, job STRING, costs STRING"


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """What the comparison has shown.

    Attributes:
        asked: jobs of the sample.
        difference: over those that were compared.
        costs: one row per job: both models' cost, slot-hours, late minutes and rescales a day.
        other_steps: one row per time from which the two had a job run otherwise, in the last week.
    """

    asked: int
    difference: FleetDifference
    costs: pd.DataFrame
    other_steps: pd.DataFrame

    @property
    def sentence(self) -> str:
        """One sentence for a reviewer."""
        result = self.difference
        if not result.jobs:
            return f"none of {self.asked} jobs could be compared: five days of history, a graph and a load are needed"
        if f"{result.mean:+.1%}" in {"+0.0%", "-0.0%"} and not len(self.other_steps):
            return f"no difference: every step of {format_count(result.jobs, 'job')} would have been the same"
        interval = f"{LEVEL:.0%} interval {result.low:+.1%} to {result.high:+.1%}"
        return (
            f"{result.mean:+.1%} against the champion's ({interval}) on {result.jobs} of {self.asked} jobs; "
            f"{len(self.other_steps)} times one of them would have run otherwise"
        )

    @property
    def measures(self) -> dict[str, float]:
        """Metrics by name."""
        result = self.difference
        named = {"difference": result.mean, "low": result.low, "high": result.high, "jobs": float(result.jobs)}
        return {f"plans/{name}": value for name, value in named.items() if np.isfinite(value)}

    @property
    def differences(self) -> dict[JobKey, float]:
        """Share by which the challenger's plans cost more, by job."""
        return {(row["cluster"], row["job"]): row["difference"] for row in self.costs.to_dict("records")}


def compare_on_sample(
    lake: Lake, settings: Settings, as_of: datetime, champion: FleetBundle, challenger: FleetBundle
) -> PlanComparison:
    """Replay the last week of a sample of the jobs that both know.

    Which jobs are taken follows from ``as_of``; how many of them are reached within :data:`BUDGET_S` does not.
    """
    known = sorted(set(champion.jobs()) & set(challenger.jobs()))
    sample = sample_jobs(known, settings.training.plan_cost_jobs, format_utc(as_of))
    if not sample:
        return summarise(0, [])
    context = lake.spark.sparkContext
    task, jobs = read_jobs(lake, settings, champion, as_of)
    chosen = lake.spark.createDataFrame(sample, ", ".join(f"{name} STRING" for name in JOB))
    spread = jobs.join(chosen, JOB, "left_semi").repartition(context.defaultParallelism, *JOB)
    rows = spread.mapInPandas(make_comparer(task, context.broadcast(challenger)), _SCHEMA).collect()
    results = [((row["cluster"], row["job"]), decode(row["costs"])) for row in rows]
    return summarise(len(sample), sorted(results, key=lambda one: one[0]))


def make_comparer(
    task: JobTask, challenger: Broadcast[FleetBundle]
) -> Callable[[Iterable[pd.DataFrame]], Iterable[pd.DataFrame]]:
    """Return the function that Spark applies to the jobs of a partition; jobs that cannot be compared give no row."""

    def compare(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        began_s = time.perf_counter()
        for batch in batches:
            rows = []
            for state in batch.to_dict("records"):
                if time.perf_counter() - began_s > BUDGET_S:
                    break
                if (costs := compare_job(task, challenger.value, state)) is not None:
                    rows.append((state["cluster"], state["job"], encode(costs)))
            yield pd.DataFrame(rows, columns=["cluster", "job", "costs"])

    return compare


def compare_job(task: JobTask, fitted: FleetBundle, state: dict[Any, Any]) -> PlanCosts | None:
    """Return what plans of a job would have cost; None where that cannot be told."""
    try:
        subject = task.read_subject(state)
        challenger = fitted.for_job(subject.cluster, subject.job, placed_of(json.loads(state["operators"])))
        return compare_plans(subject, challenger, task.settings)
    except Exception as error:  # a job must not keep the others from being compared
        is_expected = isinstance(error, SpecError | CandidateError) or name_skip(error) is not None
        log.info("%s/%s is not compared: %s", state["cluster"], state["job"], error, exc_info=not is_expected)
    return None


def encode(costs: PlanCosts) -> str:
    """Return costs as JSON."""
    return json.dumps(asdict(costs), default=np.ndarray.tolist)


def decode(text: str) -> PlanCosts:
    """Return what :func:`encode` wrote."""
    read = json.loads(text)
    steps, days = [OtherStep(**one) for one in read.pop("other_steps")], read.pop("days")
    return PlanCosts(days, **{name: np.array(value) for name, value in read.items()}, other_steps=steps)


def summarise(asked: int, results: Sequence[tuple[tuple[str, str], PlanCosts]]) -> PlanComparison:
    """Return the comparison of jobs that were replayed."""
    rows, steps = list[dict[str, object]](), list[dict[str, object]]()
    for (cluster, job), one in results:
        key: dict[str, object] = {"cluster": cluster, "job": job}
        pairs = {name: getattr(one, name) for name in ("slot_hours", "late_minutes", "rescales")}
        rows.append(
            {**key, "days": one.days, "difference": one.difference}
            | {f"{name}_champion": float(pair[0]) for name, pair in pairs.items()}
            | {f"{name}_challenger": float(pair[1]) for name, pair in pairs.items()}
        )
        for step in one.other_steps:
            since = {"from": format_utc(datetime.fromtimestamp(step.at_s, UTC)), "replica": step.replica}
            each = {CHAMPION: json.dumps(dict(step.champion)), CHALLENGER: json.dumps(dict(step.challenger))}
            steps.append({**key, **since, **each})
    difference = summarise_costs([one for _, one in results])
    return PlanComparison(asked, difference, pd.DataFrame(rows), pd.DataFrame(steps))
