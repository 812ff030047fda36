"""A week of the simulated jobs under their own rules, as the certificate takes it: load, models and what ran."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from lab.advice.history import History
from lab.backtest.subject import BIN_S, Subject
from lab.commands.history import STEP_S, HistoryRequest, draw_rates, run
from lab.replay.workload import compute_curves
from lab.simulation.history import SimulatedHistory
from lab.simulation.spec import JobSpec
from lab.simulation.state import RestartKind
from models.arrays import Floats
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel

DAYS = 7
END = datetime(2026, 11, 20, 20, tzinfo=UTC)
DOUBT = 0.05
"""Share by which a capacity is taken to be unknown, one standard deviation: about what a training leaves."""
LATE_AFTER_S = 60.0
_STEPS = round(BIN_S / STEP_S)


@dataclass(frozen=True, slots=True)
class RanJob:
    """A job's week."""

    subject: Subject
    history: History


def list_weeks(days: int = DAYS) -> Iterator[RanJob]:
    """Yield the simulated jobs, each with its days to the end of the shipped history."""
    request = HistoryRequest(days * 24, END, Path("out/never-written"))
    jobs = request.jobs()
    fleet, ran = run(request, jobs)
    rates = draw_rates(request, jobs, fleet)
    start_s = round(request.start.timestamp())
    for row, job in enumerate(jobs):
        width = len(job.spec.operators)
        sources = np.flatnonzero(fleet.is_source[row][:width])
        own = rates[:, row, sources]
        bins = own[: len(own) // _STEPS * _STEPS].reshape(-1, _STEPS, len(sources)).mean(axis=1)
        graph, models = job.spec.graph(), _know(job.spec)
        subject = Subject("simulated", job.spec.name, graph, models, job.spec.slots_max, start_s, bins)
        yield RanJob(subject, _follow(ran, row, sources, bins, start_s))


def _know(spec: JobSpec) -> JobModels:
    """Return models of a job that know its true capacities, with a doubt."""
    p = np.arange(1, spec.slots_max + 1)
    curves = {}
    for one, curve in zip(spec.operators, compute_curves(spec)[:, 1:], strict=True):
        curves[one.name] = CapacityCurve(p, curve, DOUBT * curve, p.copy(), curve.copy(), float(curve[0]))
    edges = {
        (one.name, down.name): one.output_shares.get(down.name, one.selectivity)
        for one in spec.operators
        for down in spec.operators
        if one.name in down.upstream
    }
    down_s = spec.restart_base_s
    recovery = RecoveryModel(down_s, 0.1 * down_s, down_s + spec.detection_s, 5.0, spec.checkpoint_interval_s / 2, 0)
    nothing = LatencyModel(np.zeros(0), np.zeros(0))
    return JobModels(curves, dict(spec.output_ratios), recovery, nothing, edges)


def _follow(ran: SimulatedHistory, row: int, sources: np.ndarray, rates: Floats, start_s: int) -> History:
    """Return what a job ran at, when it was late, and its stops."""
    samples, count = ran.samples, len(rates)
    parallelism = samples.parallelism[:count, row]
    waiting = samples.pending[:count, row][:, sources]
    age_s = np.divide(waiting, rates, out=np.zeros_like(rates), where=rates > 0).max(axis=1)
    stops = [one for one in ran.restarts if one.job == row]

    def times(kind: RestartKind) -> Floats:
        return np.array([start_s + one.down_from_s for one in stops if one.kind is kind], float)

    return History(
        start_s=start_s,
        parallelism=parallelism,
        slots=parallelism.max(axis=1).astype(float),
        late_s=np.where(age_s > LATE_AFTER_S, float(BIN_S), 0.0),
        rescale_s=times(RestartKind.RESCALE),
        failure_s=times(RestartKind.FAILURE),
        downtimes_s=np.zeros(0),
    )
