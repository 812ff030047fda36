"""The two jobs, workloads and failures of Phoebe's evaluation (Section IV), and every figure that was chosen for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from lab.simulation.end_to_end import EndToEnd
from lab.simulation.randomness import job_generator
from lab.simulation.spec import JobSpec, OperatorSpec
from models.arrays import Floats

DATA: Final = Path(__file__).resolve().parents[3] / "data" / "papers"

# Published: Section IV-A to IV-C.
DURATION_S: Final = 21_600
WORKERS_MAX: Final = 24
REPETITIONS: Final = 5
CHECKPOINT_INTERVAL_S: Final = 10.0
TASK_MANAGER_TIMEOUT_S: Final = 20.0
GENERATOR_NOISE: Final = 0.1  # rates vary by up to 10% up and down
SIX_MINUTES_S: Final = 360.0  # a longer recovery is "6m+"

# From the prototype's code: eight equidistant failures (the paper's "every 20 minutes" does not fill six hours),
# records per vehicle, and the noise on the day that forecasts are trained on.
FAILURES: Final = 8
FIRST_FAILURE_S: Final = 1200.0
RECORDS_PER_VEHICLE: Final = 5.0
TRAINING_NOISE: Final = 0.01

# Calibrated on the published raw runs: how long a failure stops a job (mean and sd, from the recoveries of the
# static runs), a planned stop with a savepoint, the latency without a backlog and its noise.
FAILURE_DOWNTIME_S: Final = 125.0
FAILURE_DOWNTIME_SD_S: Final = 8.0
RESCALE_DOWNTIME_S: Final = 60.0
BASE_LATENCY_MS: Final = 1050.0
LATENCY_NOISE: Final = 0.05
# Root mean square of T_max / ridge line - 1 over the eight profiled deployments of the TSW job.
CAPACITY_DEVIATION: Final = 0.044

# What the reactive mode's restart takes: the throughput of a minute halves when it rescales (prototype, TSW, run 1).
REACTIVE_RESTART_S: Final = 30.0
# The paper's target of processor use, and the one that its runs show: the prototype's manifest gives the 35% in a field
# that its API version (autoscaling/v1) does not know, whose default then holds.  In TSW runs 1, 3 and 4 workers sit at
# 0.68 of T_max in steady minutes and are added by a quarter at most, in runs 2 and 5 at 0.33 and by 2 to 4 at once.
REACTIVE_TARGET: Final = 0.35
REACTIVE_DEFAULT_TARGET: Final = 0.80

WINDOW_S: Final = 5  # failures and recoveries are placed on this grid; Table II is rounded to it


@dataclass(frozen=True, slots=True)
class Experiment:
    """One of the two experiments.

    Attributes:
        name: as in the paper.
        job: one operator stands for the whole pipeline, whose scale-out is one number.
        first_workers: of the systems that scale; from the prototype's code.
        normal_ms: latency up to which a job counts as recovered.
        rate_per_s: (DURATION_S,) records/s without noise.
        training_per_s: (T,) what the forecaster was trained on before the run.
    """

    name: str
    job: JobSpec
    first_workers: int
    normal_ms: float
    rate_per_s: Floats
    training_per_s: Floats

    def repetition(self, number: int) -> Floats:
        """Return (DURATION_S,) the workload of one repetition, records/s."""
        draws = job_generator(number, self.name, "workload")
        return np.asarray(self.rate_per_s * draws.uniform(1 - GENERATOR_NOISE, 1 + GENERATOR_NOISE, DURATION_S))


END_TO_END: Final = EndToEnd(BASE_LATENCY_MS, LATENCY_NOISE)


def failure_times_s() -> Floats:
    """Return (8,) the seconds of the failures, on the grid of windows."""
    exact = np.linspace(FIRST_FAILURE_S, DURATION_S - FIRST_FAILURE_S, FAILURES)
    return np.asarray(np.round(exact / WINDOW_S) * WINDOW_S)


def job(name: str, capacity_per_s: Floats) -> JobSpec:
    """Return a job of which T_max at 1, 2, ... workers is known; recovery times are those above."""
    pipeline = OperatorSpec("pipeline", (), float(capacity_per_s[0]), measured_per_s=tuple(capacity_per_s.tolist()))
    return JobSpec(
        name,
        (pipeline,),
        slots_max=WORKERS_MAX,
        checkpoint_interval_s=CHECKPOINT_INTERVAL_S,
        restart_base_s=RESCALE_DOWNTIME_S,
        detection_s=FAILURE_DOWNTIME_S - RESCALE_DOWNTIME_S,
        downtime_noise=FAILURE_DOWNTIME_SD_S / FAILURE_DOWNTIME_S,
        state_bytes_per_record=0.0,
        fetch_delay_s=0.0,  # part of the base latency
    )


def tsw() -> Experiment:
    """Return Top Speed Windowing: vehicles of a simulated city; T_max is the line through the published profile."""
    table = np.loadtxt(DATA / "phoebe" / "tsw_vehicles_60s.csv", delimiter=",", skiprows=1)
    rate = RECORDS_PER_VEHICLE * np.interp(np.arange(DURATION_S), table[:, 0], table[:, 1])
    capacity = np.asarray(15_891.524 * np.arange(1, WORKERS_MAX + 1) + 6_896.378, float)
    return Experiment("TSW", job("TSW", capacity), 6, 2000.0, rate, _training_load("TSW", rate))


def ysb() -> Experiment:
    """Return the Yahoo Streaming Benchmark: a sine of two hours.

    No profile of it was published; 20,000 records/s per worker fit the recoveries of the static runs.
    """
    day_s = 86_400
    sine = 100_000.0 * (1.0 + np.sin(2.0 * np.pi * np.arange(day_s) / 7200.0))
    capacity = np.asarray(20_000.0 * np.arange(1, WORKERS_MAX + 1), float)
    return Experiment("YSB", job("YSB", capacity), 14, 2500.0, sine[:DURATION_S], _training_load("YSB", sine))


def _training_load(name: str, rate_per_s: Floats) -> Floats:
    noise = job_generator(0, name, "training").standard_normal(len(rate_per_s))
    return np.asarray(np.maximum(rate_per_s * (1.0 + TRAINING_NOISE * noise), 0.0))
