"""Random inputs of a run, drawn per job from (seed, job name): a job's draws do not depend on its neighbours."""

from __future__ import annotations

import zlib

import numpy as np
from scipy.signal import lfilter

from lab.simulation.spec import JobSpec
from models.arrays import Floats

WEEK_S = 7 * 24 * 3600.0


def job_generator(seed: int, job: str, purpose: str) -> np.random.Generator:
    """Return the generator of one job for one purpose."""
    return np.random.default_rng([seed, zlib.crc32(job.encode()), zlib.crc32(purpose.encode())])


def capacity_noise(spec: JobSpec, width: int, steps: int, step_s: float, seed: int) -> Floats:
    """Return factors on the capacity, (steps, width): AR(1) around 1, ten minutes of memory, padding 1."""
    memory = float(np.exp(-step_s / 600.0))
    own = len(spec.operators)
    draws = job_generator(seed, spec.name, "capacity").standard_normal((steps, own))
    draws[0] /= np.sqrt(1.0 - memory**2)  # start in the stationary law
    walk = lfilter([spec.capacity_noise * np.sqrt(1.0 - memory**2)], [1.0, -memory], draws, axis=0)
    factors = np.ones((steps, width))
    factors[:, :own] = np.clip(1.0 + walk, 0.5, 1.5)
    return factors


def failure_times_s(spec: JobSpec, duration_s: float, seed: int) -> Floats:
    """Return the times of a job's failures, (n,) ascending: a Poisson process."""
    generator = job_generator(seed, spec.name, "failures")
    count = int(generator.poisson(spec.failures_per_week * duration_s / WEEK_S))
    return np.sort(generator.uniform(0.0, duration_s, count))
