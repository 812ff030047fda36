"""From scores to what single jobs are judged by, and to the rows on which the fleet is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import pandas as pd

from models.bundle.fleet_bundle import JobKey
from models.training.job_gate import JobErrors
from spark_jobs.train.day_windows import JOB
from spark_jobs.train.gate_criteria import read_column
from spark_jobs.train.training_events import find_places
from spark_jobs.train.training_measures import TrainingScores

RECOVERY_WEIGHT = LATENCY_WEIGHT = 5.0  # as their tolerances are to that of capacities in gate_criteria
UNSEEN_WEIGHT = 2.0


def list_job_errors(scores: TrainingScores, jobs: Sequence[JobKey]) -> list[JobErrors]:
    """Return the errors of capacity, recovery and latency, on rows of these jobs.

    Coverage is not among them: intervals are calibrated, and judged, for the fleet as a whole.
    """
    hours = scores.forward.capacity
    frames = [
        ("capacity_held", "capacity error of held-back windows", _drop_idle(scores.capacity), 1.0),
        ("capacity_seen", "capacity error of the hours ahead", _drop_idle(hours[hours["place"] == "seen"]), 1.0),
        (
            "capacity_unseen",
            "capacity error of the hours ahead at parallelisms never seen",
            _drop_idle(hours[hours["place"] == "unseen"]),
            UNSEEN_WEIGHT,
        ),
        ("recovery", "error of recovery times ahead", scores.forward.recovery, RECOVERY_WEIGHT),
        ("latency", "latency error of held-back windows", scores.latency, LATENCY_WEIGHT),
    ]
    return [_errors_of(name, meaning, rows, jobs, weight) for name, meaning, rows, weight in frames]


def _drop_idle(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of busy operators of each job; all of a job without one."""
    if rows.empty:
        return rows
    is_busy = (rows["idle"] == False).to_numpy(bool)  # noqa: E712 - may be null
    has_busy = pd.Series(is_busy).groupby([rows[name].to_numpy() for name in JOB]).transform("any").to_numpy(bool)
    result: pd.DataFrame = rows[is_busy | ~has_busy]
    return result


def _errors_of(name: str, meaning: str, rows: pd.DataFrame, jobs: Sequence[JobKey], weight: float) -> JobErrors:
    job = find_places(rows, jobs)
    own = rows[job >= 0]
    ours, champion, naive = (read_column(own, column) for column in ("error", "champion_error", "linear_error"))
    return JobErrors(name, meaning, job[job >= 0], ours, champion, naive, weight)


def drop_jobs(scores: TrainingScores, jobs: Collection[JobKey]) -> TrainingScores:
    """Return the scores without rows of some jobs: those that have no models of this training."""
    dropped = sorted(jobs)

    def rest(rows: pd.DataFrame) -> pd.DataFrame:
        return rows[find_places(rows, dropped) < 0]

    forward = replace(scores.forward, capacity=rest(scores.forward.capacity), recovery=rest(scores.forward.recovery))
    return TrainingScores(rest(scores.capacity), rest(scores.latency), scores.recovery, forward)
