"""Capacity curves of operators, fitted in batches from the points that their windows show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from include.settings import Training
from models.arrays import Floats, Ints
from models.bundle.fleet_bundle import JobKey
from models.capacity.busy_windows import split_doubt
from models.capacity.capacity_samples import pack
from models.capacity.operator_curves import fit_operator_curves
from models.capacity.robust_means import reduce_windows
from models.training.busy_choice import BusyWindows
from models.training.job_windows import TrainingHistory


@dataclass(frozen=True, slots=True)
class OperatorPoints:
    """The latest capacities of one operator at each of m parallelisms.

    Attributes:
        job: cluster and name.
        operator: its name.
        parallelism: (m,) ascending.
        capacities_per_s: m arrays of at most K windows each.
        busiest: (m,) highest busy share there.
        idle: whether the operator is never busy.
        largest: parallelism that was observed in the job.
        key_groups: `maxParallelism`, NaN where it is not known.
        top: largest parallelism of the curve.
    """

    job: JobKey
    operator: str
    parallelism: Ints
    capacities_per_s: tuple[Floats, ...]
    busiest: Floats
    idle: bool
    largest: int
    key_groups: float
    top: int


@dataclass(frozen=True, slots=True)
class OperatorFit:
    """The capacity curve of one operator on the grid 1..P, observed at m parallelisms; not calibrated.

    Attributes:
        mean_per_s, sd_per_s: (P,).
        observed, observed_count, observed_per_s: (m,) parallelism, windows without gross errors, and their mean.
        doubt: (m,) see models.capacity.busy_windows.
        slope_per_s, length_scale, signal_ratio, noise_share: see models.bundle.job_models.CapacityCurve.
        at_bound: whether noise and residual could not be distinguished.
        idle: whether the operator is never busy.
        busiest_share: highest busy share.
        left_out, left_out_place: (k,) residuals of points that were hidden from a fit, and their places.
    """

    mean_per_s: Floats
    sd_per_s: Floats
    observed: Ints
    observed_count: Ints
    observed_per_s: Floats
    doubt: Floats
    slope_per_s: float
    length_scale: float
    signal_ratio: float
    noise_share: float
    at_bound: bool
    idle: bool
    busiest_share: float
    left_out: Floats
    left_out_place: Ints


def list_points(history: TrainingHistory, chosen: BusyWindows, options: Training) -> tuple[OperatorPoints, ...]:
    """Return the points of each operator that shows a capacity: of the K most recent windows per parallelism.

    A curve reaches as far as slots and key groups allow, and what was observed.
    """
    recent = chosen.take_recent(options.recent_per_parallelism)
    recent = recent.take(np.lexsort((recent.capacity_per_s, recent.parallelism, recent.operator)))
    largest = int(recent.parallelism.max(initial=0))
    limits = {one.name: one.max_parallelism for one in history.operators}
    result = []
    for operator in np.unique(recent.operator).tolist():
        mine = recent.take(recent.operator == operator)
        at, first, capacities = split_points(mine.parallelism, mine.capacity_per_s)
        name = history.windows.operators[operator]
        limit = limits.get(name)
        allowed = history.slots_max if limit is None else min(history.slots_max, limit)
        points = OperatorPoints(
            history.job,
            name,
            parallelism=at,
            capacities_per_s=capacities,
            busiest=mine.busiest[first],
            idle=bool(mine.idle[0]),
            largest=largest,
            key_groups=float("nan") if limit is None else float(limit),
            top=max(largest, allowed),
        )
        result.append(points)
    return tuple(result)


def split_points(parallelism: Ints, capacity_per_s: Floats) -> tuple[Ints, Ints, tuple[Floats, ...]]:
    """Return each parallelism of windows that are in its order, where it begins, and the capacities of its windows."""
    at, first = np.unique(parallelism, return_index=True)
    return at, first, tuple(np.split(capacity_per_s, first[1:]))


def fit_operators(batch: Sequence[OperatorPoints], *, leaves_out: bool = True) -> list[OperatorFit]:
    """Fit all operators of a batch, at least one point of each, at once.

    ``leaves_out`` says whether curves are also tried on points that were hidden from them.
    """
    if not batch:
        return []
    points = np.array([len(one.parallelism) for one in batch])
    owner_of_point = np.repeat(np.arange(len(batch)), points)
    windows = np.array([len(each) for one in batch for each in one.capacities_per_s])
    owner, parallelism, count, mean_per_s, squares = reduce_windows(
        np.repeat(owner_of_point, windows),
        np.repeat(np.concatenate([one.parallelism for one in batch]), windows),
        np.concatenate([each for one in batch for each in one.capacities_per_s]),
    )
    busiest = np.concatenate([one.busiest for one in batch])
    shared, doubt = split_doubt(owner_of_point, busiest)
    curves = fit_operator_curves(
        pack(owner, parallelism, count, mean_per_s, squares, doubt=doubt),
        np.array([one.largest for one in batch], float),
        np.array([one.key_groups for one in batch]),
        max(one.top for one in batch),
        shared_doubt=shared,
        leaves_out=leaves_out,
    )
    result = []
    for row, (one, end) in enumerate(zip(batch, np.cumsum(points).tolist(), strict=True)):
        own = slice(end - len(one.parallelism), end)
        tried = np.isfinite(curves.left_out[row])
        fitted = OperatorFit(
            mean_per_s=curves.mean_per_s[row, : one.top],
            sd_per_s=curves.sd_per_s[row, : one.top],
            observed=parallelism[own],
            observed_count=count[own],
            observed_per_s=mean_per_s[own],
            doubt=doubt[own],
            slope_per_s=float(curves.slope_per_s[row]),
            length_scale=float(curves.length_scale[row]),
            signal_ratio=float(curves.signal_ratio[row]),
            noise_share=float(curves.noise_share[row]),
            at_bound=bool(curves.at_bound[row]),
            idle=one.idle,
            busiest_share=float(one.busiest.max()),
            left_out=curves.left_out[row][tried],
            left_out_place=curves.left_out_place[row][tried],
        )
        result.append(fitted)
    return result


Fits = Mapping[str, OperatorFit]
"""Operator -> fit, of one job."""
