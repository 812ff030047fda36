"""Partial pooling for one job: operators without a good model of their own get the posterior of the fleet prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from include.domain.graph import JobGraph
from models.arrays import Floats
from models.bundle.job_models import CapacityCurve, JobModels
from models.capacity.fleet_prior import MIN_POINTS, MIN_RANGE, FleetPrior
from models.capacity.kinds import kind_of
from models.capacity.prior_posterior import posterior

# Where the level varies more than this over a kind, a planner could only take all slots: an operator that was never
# observed then stays without a model and keeps its parallelism.
MAX_LEVEL_SD: Final = 0.5


@dataclass(frozen=True, slots=True)
class _PooledOperator:
    name: str
    kind: int
    curve: CapacityCurve | None
    top: int  # largest parallelism of its grid


def pool_models(models: JobModels, graph: JobGraph, prior: FleetPrior | None, slots_max: int) -> JobModels:
    """Return a job's models in which operators that were observed little have their kind's prior too.

    An operator that was never observed stays without a model where the levels of its kind vary by more than
    :data:`MAX_LEVEL_SD`; else its grid goes up to ``slots_max``.  Without a prior all stays as it is.
    """
    if prior is None:
        return models
    pooled = _select_operators(models, graph, prior, slots_max)
    if not pooled:
        return models
    observed, observed_per_s, noise_share = _observations([operator.curve for operator in pooled])
    mean, sd = posterior(
        prior,
        np.array([operator.kind for operator in pooled]),
        observed,
        observed_per_s,
        noise_share=noise_share,
        top=max(operator.top for operator in pooled),
    )
    curves = {
        operator.name: _curve(
            operator.curve, mean[row, : operator.top], sd[row, : operator.top], prior.length_scale[operator.kind]
        )
        for row, operator in enumerate(pooled)
    }
    return replace(models, capacity={**models.capacity, **curves})


def _select_operators(models: JobModels, graph: JobGraph, prior: FleetPrior, slots_max: int) -> list[_PooledOperator]:
    """Return the operators that need the prior and for which it is narrow enough."""
    upstream_names = {name for operator in graph.operators for name in operator.upstream}
    selected = []
    for operator in graph.operators:
        curve = models.capacity.get(operator.name)
        if curve is not None and _is_well_observed(curve):
            continue
        feeds_others = operator.name in upstream_names
        kind = prior.kinds.index(kind_of(operator.name, len(operator.upstream), int(feeds_others)))
        if curve is None and prior.covariance[kind, 0, 0] > MAX_LEVEL_SD**2:
            continue
        top = min(operator.max_parallelism, slots_max) if curve is None else len(curve.parallelism)
        selected.append(_PooledOperator(operator.name, kind, curve, top))
    return selected


def _is_well_observed(curve: CapacityCurve) -> bool:
    return len(curve.observed) >= MIN_POINTS and bool(curve.observed[-1] >= MIN_RANGE * curve.observed[0])


def _observations(curves: Sequence[CapacityCurve | None]) -> tuple[Floats, Floats, Floats]:
    """Return parallelism, capacity and its noise as a share, (B, m) each, NaN in the padding."""
    width = max(len(curve.observed) if curve else 0 for curve in curves)
    observed, per_s, noise = (np.full((len(curves), width), np.nan) for _ in range(3))
    for row, curve in enumerate(curves):
        if curve is not None:
            places = slice(0, len(curve.observed))
            observed[row, places], per_s[row, places] = curve.observed, curve.observed_per_s
            # The noise of the means: what the operator's own fit leaves uncertain at observed parallelisms, and where
            # it does not follow an observation, because of light use, how far that one is off.
            mean, sd = curve.mean_per_s[curve.observed - 1], curve.sd_per_s[curve.observed - 1]
            noise[row, places] = np.hypot(sd, curve.observed_per_s - mean) / curve.observed_per_s
    return observed, per_s, noise


def _curve(curve: CapacityCurve | None, mean_per_s: Floats, sd_per_s: Floats, length_scale: float) -> CapacityCurve:
    none = np.zeros(0)
    return CapacityCurve(
        parallelism=np.arange(1, len(mean_per_s) + 1),
        mean_per_s=mean_per_s,
        sd_per_s=sd_per_s,
        observed=none.astype(np.int64) if curve is None else curve.observed,
        observed_per_s=none if curve is None else curve.observed_per_s,
        slope_per_s=float(mean_per_s[0]),
        length_scale=float(length_scale),
        noise_share=float("nan") if curve is None else curve.noise_share,
    )
