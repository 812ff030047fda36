"""Situations of the controllers in the experiments: the latest windows, and one shared forecast per repetition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.papers.phoebe import phoebe_setup
from include.settings import Planner
from lab.policies.phoebe.forecast import MultistepForecast
from lab.simulation.spec import JobSpec
from lab.simulation.testbed import TestbedWindow, observations
from models.arrays import Floats
from models.bundle.job_models import JobModels, LatencyModel, RecoveryModel
from models.policies.job_snapshot import Snapshot
from models.policies.observations import Latency
from models.policies.protocol import Situation
from models.scheduling.demand import LEVELS, SourceForecast

_REFIT_S = 600


class Forecasts:
    """The forecast of one repetition at any second, refitted every ten minutes; the same for Phoebe and TWRES.

    Args:
        training_per_s: (T,) known before the run.
        arrivals_per_s: (DURATION_S,) of the run; only what lies before the requested second is used.
    """

    def __init__(self, training_per_s: Floats, arrivals_per_s: Floats) -> None:
        self._training = training_per_s
        self._arrivals = arrivals_per_s
        self._model: tuple[int, MultistepForecast] | None = None
        self._last: tuple[int, Floats] | None = None

    def ahead(self, at: int) -> Floats:
        """Return (600,) records/s from a second on."""
        if self._last is None or self._last[0] != at:
            begin = at // _REFIT_S * _REFIT_S
            if self._model is None or self._model[0] != begin:
                self._model = (begin, MultistepForecast.fit([self._training, self._arrivals[:begin]]))
            self._last = (at, self._model[1].ahead(self._arrivals[:at]))
        return self._last[1]


class Situations:
    """Situations of jobs that differ in nothing but what was measured."""

    def __init__(self, spec: JobSpec) -> None:
        self._graph = spec.graph()
        self._operators = len(spec.operators)
        # Restart times as observed before the run, Section III-B; capacity and latency come from Phoebe's own profile.
        recovery = RecoveryModel(
            downtime_rescale_s=phoebe_setup.RESCALE_DOWNTIME_S,
            downtime_rescale_sd_s=0.0,
            downtime_restart_s=phoebe_setup.FAILURE_DOWNTIME_S,
            downtime_restart_sd_s=phoebe_setup.FAILURE_DOWNTIME_SD_S,
            checkpoint_interval_s=phoebe_setup.CHECKPOINT_INTERVAL_S,
            events=0,
        )
        self._models = JobModels({}, {"pipeline": 1.0}, recovery, LatencyModel(np.zeros(0), np.zeros(0)))
        self._options = Planner()

    def at(self, at: int, job: int, workers: int, windows: Sequence[TestbedWindow], ahead_per_s: Floats) -> Situation:
        """Return what one job's controller sees at a second."""
        paths = np.broadcast_to(ahead_per_s, (len(LEVELS), len(ahead_per_s)))
        snapshot = Snapshot(
            now_s=at,
            graph=self._graph,
            running={"pipeline": workers},
            up=True,
            slots_max=phoebe_setup.WORKERS_MAX,
            options=self._options,
            models=self._models,
            # the experiment puts them there, see lab.simulation.end_to_end
            observations=replace(observations(windows, job, self._operators), latency=Latency.END_TO_END),
            seed=job,
        )
        return Situation(snapshot, SourceForecast(at, 1, {"pipeline": paths}))
