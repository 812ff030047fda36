"""Models of jobs from their histories: the steps of a training between the windows and the bundle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from include.settings import Training
from models.arrays import Floats
from models.bundle.fleet_bundle import FleetBundle
from models.training.calibration import Residuals, scale_intervals
from models.training.fleet_bundle import assemble_bundle, list_fits, number_clusters
from models.training.job_facts import JobEstimates, learn_facts
from models.training.job_tests import JobTests, list_tests
from models.training.job_windows import TrainingHistory
from models.training.operator_fits import Fits
from models.training.recovery_fits import RecoveryEvents, RecoveryFits, fit_recoveries, set_factors


@dataclass(frozen=True, slots=True)
class LearnedJob:
    """What one job's windows tell.

    Attributes:
        facts: of all windows.
        before: of those that a trial sees; None without a trial.
        tests: windows that judge models.
    """

    facts: JobEstimates
    before: JobEstimates | None
    tests: JobTests


def learn_job(history: TrainingHistory, options: Training, as_of_s: float, since_s: float | None) -> LearnedJob:
    """Return what a job's windows up to ``as_of_s`` tell; what a trial predicts begins at ``since_s``, epoch s."""
    before = None
    if since_s is not None:
        before = learn_facts(history, options, since_s, usable=history.windows.end_s <= since_s)
    return LearnedJob(learn_facts(history, options, as_of_s), before, list_tests(history, options, since_s))


def assemble_fleet(
    model_version: str, jobs: Sequence[JobEstimates], fits: Sequence[Fits], events: RecoveryEvents
) -> tuple[FleetBundle, RecoveryFits]:
    """Return the bundle of jobs that learn from each other, without its intervals, and what was expected of events.

    Jobs are in the order of their names.
    """
    fitted = fit_recoveries(events, number_clusters(one.job for one in jobs))
    return assemble_bundle(model_version, jobs, fits, fitted.recovery), fitted


def with_intervals(
    bundle: FleetBundle, fits: Sequence[Fits], residuals: Residuals, recovery_errors: Floats
) -> FleetBundle:
    """Return a bundle whose intervals would have held what came.

    Residuals are of what was ahead of the trial, of all jobs; standardised errors of recovery times, (n,), in order of
    time.
    """
    recovery = set_factors(bundle.arrays["recovery"], recovery_errors)
    arrays = {**bundle.arrays, "recovery": recovery, "interval_scale": scale_intervals(residuals, list_fits(fits))}
    return replace(bundle, arrays=arrays)
