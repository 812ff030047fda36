"""One bundle from what was learnt of each job, with the tables that a training shows beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from models.bundle.fleet_bundle import FleetBundle, JobKey
from models.training.job_facts import JobEstimates, learn_nothing
from models.training.job_windows import KnownOperator
from models.training.operator_fits import Fits
from models.training.train_job import assemble_fleet
from spark_jobs.train.day_windows import OPERATOR
from spark_jobs.train.training_events import list_events

_SCALARS = ("slope_per_s", "length_scale", "signal_ratio", "noise_share", "at_bound", "idle", "busiest_share")


@dataclass(frozen=True, slots=True)
class AssembledBundle:
    """A bundle and what it was made from.

    Attributes:
        bundle: the models.
        fits: of the operators of each job of the bundle.
        operators: one row per operator, sorted; scalar columns of the fits.
        events: the events with ``downtime_before_s``, the downtime that was to be expected before each, and
            ``downtimes_before``, from how many of the job.
        recoveries: what was expected of each event before it, and what was seen: rows of recovery_scores.
    """

    bundle: FleetBundle
    fits: Sequence[Fits]
    operators: pd.DataFrame
    events: pd.DataFrame
    recoveries: pd.DataFrame = field(default_factory=pd.DataFrame)


def assemble(
    model_version: str,
    jobs: Sequence[JobEstimates],
    fits: Sequence[Fits],
    events: pd.DataFrame,
    operators: Mapping[JobKey, tuple[KnownOperator, ...]],
) -> AssembledBundle:
    """Put a fleet's fits together; no intervals are calibrated yet.

    Operators are those of the latest graph of every job, with windows or without; events those of learn_jobs.
    """
    fits_of: dict[JobKey, Fits] = {one.job: own for one, own in zip(jobs, fits, strict=True)}
    known_by_graph = [learn_nothing(job, known) for job, known in operators.items() if job not in fits_of]
    every = sorted((one for one in (*jobs, *known_by_graph) if one.operators), key=lambda one: one.job)
    own = [fits_of.get(one.job, {}) for one in every]
    known, arrays = list_events(events, [one.job for one in every])
    bundle, fitted = assemble_fleet(model_version, every, own, arrays)
    expected = {"downtime_before_s": fitted.downtime_before_s, "downtimes_before": fitted.downtimes_before}
    return AssembledBundle(bundle, own, _operator_rows(every, own), known.assign(**expected))


def _operator_rows(jobs: Sequence[JobEstimates], fits: Sequence[Fits]) -> pd.DataFrame:
    """Return one row per operator; scalars of those without a curve are null."""
    rows = [
        {
            **dict(zip(OPERATOR, (*one.job, name), strict=True)),
            "selectivity": one.selectivity.get(name, 1.0),
            **{scalar: getattr(own.get(name), scalar, None) for scalar in _SCALARS},
        }
        for one, own in zip(jobs, fits, strict=True)
        for name in one.operators
    ]
    numbers = dict.fromkeys(("slope_per_s", "length_scale", "noise_share"), float)
    return pd.DataFrame(rows, columns=[*OPERATOR, "selectivity", *_SCALARS]).astype(numbers)
