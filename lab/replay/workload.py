"""A job with its load, and what the job needs for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lab.simulation.capacity import compute_capacity_curve, compute_gains, find_needed_parallelism
from lab.simulation.spec import JobSpec
from models.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Workload:
    """Rates at which records arrive at a job's sources; S sources, T steps.

    Attributes:
        spec: the job.
        start_s: epoch seconds of the first step.
        step_s: length of a step.
        rates_per_s: (T, S) in the order of the job's sources.
    """

    spec: JobSpec
    start_s: int
    step_s: int
    rates_per_s: Floats

    def __post_init__(self) -> None:
        if self.rates_per_s.ndim != 2 or self.rates_per_s.shape[1] != len(self.spec.source_names):
            raise ValueError(f"rates must be (T, {len(self.spec.source_names)}), are {self.rates_per_s.shape}")
        if not np.isfinite(self.rates_per_s).all() or (self.rates_per_s < 0).any():
            raise ValueError("rates must be finite and not negative")

    def compute_means(self, seconds: int) -> Floats:
        """Return (n, S) mean rates over whole intervals of some seconds."""
        steps = seconds // self.step_s
        whole = len(self.rates_per_s) // steps
        rates: Floats = self.rates_per_s[: whole * steps].reshape(whole, steps, -1).mean(axis=1)
        return rates


def compute_curves(spec: JobSpec) -> Floats:
    """Return (O, P + 1) true capacities of the operators, records/s, at p = 0..P, P the job's slots."""
    return np.stack([compute_capacity_curve(operator, spec.slots_max) for operator in spec.operators])


def find_limits(spec: JobSpec) -> Ints:
    """Return (O,) the highest admissible parallelism: key groups and slots."""
    return np.array([min(operator.max_parallelism, spec.slots_max) for operator in spec.operators], np.int64)


def compute_source_gains(spec: JobSpec) -> Floats:
    """Return (O, S) input records of each operator per record of each source."""
    sources = [place for place, operator in enumerate(spec.operators) if not operator.upstream]
    return compute_gains(spec)[:, sources]


def find_sufficient(spec: JobSpec, rates_per_s: Floats, utilisation: float) -> Ints:
    """Return (..., O) the least parallelism that keeps every operator at or below a utilisation.

    Args:
        spec: the job, with its true capacities.
        rates_per_s: (..., S) of its sources.
        utilisation: in (0, 1].
    """
    loads = np.asarray(rates_per_s, float) @ compute_source_gains(spec).T
    curves = np.broadcast_to(compute_curves(spec), (*loads.shape, spec.slots_max + 1))
    return np.minimum(find_needed_parallelism(curves, loads, utilisation), find_limits(spec))
