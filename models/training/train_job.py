"""Models of jobs from their histories: the training of the train stage, for jobs that are each alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from include.settings import Training
from models.arrays import Floats
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import JobModels
from models.training.calibration import Residuals, scale_intervals, standardise_ahead
from models.training.fleet_bundle import assemble_bundle, list_fits, number_clusters
from models.training.job_facts import JobFacts, learn_facts
from models.training.job_tests import JobTests, list_tests
from models.training.job_windows import JobHistory
from models.training.operator_fits import Fits, OperatorPoints, fit_operators
from models.training.recovery_fits import Events, RecoveryFits, fit_recoveries, set_factors

ALONE: Final = "alone"
"""Version of the models of a job that is trained without a fleet."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """What one job's windows tell.

    Attributes:
        facts: of all windows.
        before: of those that a trial sees; None without a trial.
        tests: windows that judge models.
    """

    facts: JobFacts
    before: JobFacts | None
    tests: JobTests


def learn_job(history: JobHistory, options: Training, as_of_s: float, since_s: float | None) -> Learnt:
    """Return what a job's windows tell.

    Args:
        history: of the job, up to ``as_of_s``, epoch seconds.
        options: the settings.
        as_of_s: when.
        since_s: what a trial predicts begins then: see job_tests.find_since; None for no trial.
    """
    before = None
    if since_s is not None:
        before = learn_facts(history, options, since_s, usable=history.windows.end_s <= since_s)
    return Learnt(learn_facts(history, options, as_of_s), before, list_tests(history, options, since_s))


def assemble_fleet(
    model_version: str, jobs: Sequence[JobFacts], fits: Sequence[Fits], events: Events
) -> tuple[FleetBundle, RecoveryFits]:
    """Return the bundle of jobs that learn from each other, without its intervals, and what was expected of events.

    Args:
        model_version: of this training.
        jobs: what was learnt of each, in the order of their names.
        fits: of the operators of each.
        events: of all of them.
    """
    fitted = fit_recoveries(events, number_clusters(one.job for one in jobs))
    return assemble_bundle(model_version, jobs, fits, fitted.recovery), fitted


def with_intervals(
    bundle: FleetBundle, fits: Sequence[Fits], residuals: Residuals, recovery_errors: Floats
) -> FleetBundle:
    """Return a bundle whose intervals would have held what came.

    Args:
        bundle: of :func:`assemble_fleet`.
        fits: the same.
        residuals: of what was ahead of the trial, of all jobs.
        recovery_errors: (n,) standardised errors of recovery times, in order of time; empty where none is measured.
    """
    recovery = set_factors(bundle.arrays["recovery"], recovery_errors)
    arrays = {**bundle.arrays, "recovery": recovery, "interval_scale": scale_intervals(residuals, list_fits(fits))}
    return replace(bundle, arrays=arrays)


def build_alone(facts: JobFacts, fits: Fits, events: Events, residuals: Residuals | None = None) -> JobModels:
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
    histories: Sequence[JobHistory],
    events: Sequence[Events],
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
