"""Capacity curves as tables over parallelism, and their inverse."""

from __future__ import annotations

import numpy as np

from lab.simulation.spec import JobSpec, OperatorSpec
from models.arrays import Floats, Ints


def compute_capacity_curve(spec: OperatorSpec, p_max: int) -> Floats:
    """Return the capacity C(p) in records/s for p = 0..p_max, shape (p_max + 1,); C(0) = 0.

    A measured curve is taken as it is and stays at its last value beyond it; otherwise
    C(p) = g p / (1 + a (p-1) + b p (p-1)) (ContTune sheet, section 8).

    Deviation: a fitted negative b makes the formula explode or fall beyond the measured range, so the denominator is
    kept at 1 or more and the curve is clamped to be monotone.
    """
    p = np.arange(p_max + 1, dtype=np.float64)
    if spec.measured_per_s:
        known = np.concatenate([[0.0], spec.measured_per_s])
        return np.maximum.accumulate(known[np.minimum(np.arange(p_max + 1), len(known) - 1)])
    denominator = 1.0 + spec.contention * (p - 1.0) + spec.curvature * p * (p - 1.0)
    curve = spec.per_subtask_per_s * p / np.maximum(denominator, 1.0)
    curve[0] = 0.0
    return np.maximum.accumulate(curve)


def compute_gains(spec: JobSpec, *, through_bursts: bool = True) -> Floats:
    """Return input records at each operator per record that each source takes in, shape (operators, operators).

    Row i, column s; only columns of sources differ from zero and a source's own entry is 1.  Along every edge goes what
    the job's :attr:`~lab.simulation.spec.JobSpec.edge_ratios` say (Eq. 8 of DS2, where an operator's are all alike).

    Args:
        spec: the job.
        through_bursts: whether operators that emit in bursts are taken at their mean rate; else each of them has a
            column of its own, of records that it took in before and emits now.
    """
    position = {operator.name: index for index, operator in enumerate(spec.operators)}
    ratios = spec.edge_ratios
    gain = np.zeros((len(position), len(position)))
    for index, operator in enumerate(spec.operators):
        if not operator.upstream:
            gain[index, index] = 1.0
        for upstream in dict.fromkeys(operator.upstream):
            above, ratio = position[upstream], ratios[upstream, operator.name]
            if spec.operators[above].burst_s and not through_bursts:
                gain[index, above] += ratio
            else:
                gain[index] += gain[above] * ratio
    return gain


def find_needed_parallelism(curves: Floats, load_per_s: Floats, utilisation: float) -> Ints:
    """Return the smallest p with utilisation x C(p) >= load, or the last p when none has.

    Args:
        curves: (..., P + 1) monotone capacities for p = 0..P.
        load_per_s: (...) input rates.
        utilisation: target share of the capacity, in (0, 1].

    Returns:
        (...) parallelism, at least 1.
    """
    short = utilisation * curves < load_per_s[..., None]
    needed: Ints = np.clip(short.sum(axis=-1), 1, curves.shape[-1] - 1).astype(np.int64)
    return needed
