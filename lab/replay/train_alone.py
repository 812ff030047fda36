"""Models of jobs from their histories, each a fleet of its own: the training of the train stage in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from include.settings import Training
from models.bundle.job_models import JobModels
from models.training.calibration import Residuals, standardise_ahead
from models.training.job_facts import JobEstimates
from models.training.job_windows import TrainingHistory, TrainingWindows
from models.training.operator_fits import Fits, OperatorPoints, fit_operators
from models.training.recovery_fits import RecoveryEvents
from models.training.train_job import assemble_fleet, learn_job, with_intervals

ALONE: Final = "alone"
"""Version of the models of a job that is trained without a fleet."""


def find_first_s(windows: TrainingWindows) -> float:
    """Return the begin of the first window with a measurement, epoch seconds; in a far future without one."""
    return float(windows.start_s[windows.is_measured.any(axis=1)].min(initial=2**62))


def build_alone(
    facts: JobEstimates, fits: Fits, events: RecoveryEvents, residuals: Residuals | None = None
) -> JobModels:
    """Return the models of a job that is a fleet of its own.

    Args:
        facts: what was learnt of it.
        fits: of its operators.
        events: its own, whose catch-ups are not measured.
        residuals: of what was ahead of a trial; None without one.
    """
    bundle, _ = assemble_fleet(ALONE, [facts], [fits], events)
    residuals = Residuals.join(()) if residuals is None else residuals
    return with_intervals(bundle, [fits], residuals, np.zeros(0)).for_job(*facts.job)


def fit_jobs(points: Sequence[Sequence[OperatorPoints]], *, leaves_out: bool = True) -> list[Fits]:
    """Return the fits of each job, of the points of its operators; all in one batch."""
    fitted = iter(fit_operators([one for own in points for one in own], leaves_out=leaves_out))
    return [{one.operator: next(fitted) for one in own} for own in points]


def train_alone(
    histories: Sequence[TrainingHistory],
    events: Sequence[RecoveryEvents],
    options: Training,
    as_of_s: float,
    since_s: Sequence[float | None],
) -> list[JobModels | None]:
    """Return the models of jobs each of which is a fleet of its own; None for one that showed no capacity yet.

    Their curves are fitted in one batch, which is all that they share.

    Args:
        histories: n jobs, up to ``as_of_s``, epoch seconds.
        events: of each.
        options: the settings.
        as_of_s: when.
        since_s: of each, see :func:`learn_job`.
    """
    learnt = [learn_job(one, options, as_of_s, since) for one, since in zip(histories, since_s, strict=True)]
    fits = fit_jobs([one.facts.points for one in learnt])
    trial = fit_jobs([one.before.points if one.before else () for one in learnt], leaves_out=False)
    return [
        build_alone(one.facts, mine, own, standardise_ahead(one.tests, tried)) if one.facts.points else None
        for one, own, mine, tried in zip(learnt, events, fits, trial, strict=True)
    ]
