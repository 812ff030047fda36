"""OptScaler's memory of a job, and how windows enter it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from lab.policies.job_windows import PolicyWindows
from lab.policies.optscaler.estimator import Estimator, UtilisationSample, fit_estimator
from lab.policies.optscaler.optscaler_options import OptScalerOptions
from lab.policies.optscaler.planned_load import ForecastLoad
from models.policies.job_snapshot import Snapshot

_MAX_SAMPLES = 288


@dataclass(frozen=True, slots=True)
class OptScalerMemory:
    """Memory of a job.

    Attributes:
        read_until_s: end of the last window that was read, epoch seconds; None before the first.
        samples: the latest windows of a steady job, oldest first.
        estimator: of the utilisation; None before the first sample.
        fitted_s: when it was fitted last.
        load_per_s: of the last window in which it is known, all sources together.
        decided_s: time of the last decision.
        planned: load that the newest plan expects.
    """

    read_until_s: int | None = None
    samples: tuple[UtilisationSample, ...] = ()
    estimator: Estimator | None = None
    fitted_s: int | None = None
    load_per_s: float | None = None
    decided_s: int | None = None
    planned: ForecastLoad = field(default_factory=ForecastLoad)

    def learn(self, job: Snapshot, options: OptScalerOptions) -> OptScalerMemory:
        """Return the memory after the windows that it has not read yet.

        The estimator is fitted as long as its samples are fewer than it may have, and then once in ``refit_s``; in
        between each window corrects it.

        Deviation: the paper fits it once, on a history from before.
        """
        new = job.observations if self.read_until_s is None else job.observations.since(self.read_until_s)
        windows = PolicyWindows.of(job.graph, new)
        if not len(windows):
            return self
        steady = np.flatnonzero(windows.is_steady)
        per_worker = windows.taken_per_s[steady] / windows.workers[steady]
        added = tuple(map(UtilisationSample, per_worker.tolist(), windows.use[steady].tolist()))
        samples = (*self.samples, *added)[-_MAX_SAMPLES:]
        loads = windows.arrived_per_s[np.isfinite(windows.arrived_per_s)]
        estimator, fitted_s = self.estimator, self.fitted_s
        is_due = fitted_s is None or job.now_s - fitted_s >= options.refit_s or len(self.samples) < _MAX_SAMPLES
        if added and is_due:
            estimator, fitted_s = fit_estimator(samples), job.now_s
        for sample in added:
            estimator = estimator and estimator.correct(sample, options.feedback)
        return replace(
            self,
            read_until_s=int(windows.end_s[-1]),
            samples=samples,
            estimator=estimator,
            fitted_s=fitted_s,
            load_per_s=float(loads[-1]) if len(loads) else self.load_per_s,
        )
