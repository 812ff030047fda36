"""Learning the fleet prior: the mean and covariance of the scaling curves of a kind's well-observed operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Ints
from models.capacity.fleet_prior import MIN_POINTS, MIN_RANGE, FleetPrior
from models.capacity.kinds import KINDS

# The prior of the prior, which counts as so many operators: linear scaling, wrong by about what
# models.capacity.curves assumes (20% from 4 instances to 8), and levels within a factor of e.
PRIOR_OPERATORS: Final = 2.0
LEVEL_SD_PRIOR: Final = 1.0
CONTENTION_SD_PRIOR: Final = 0.05
RESIDUAL_SD_PRIOR: Final = 0.03
LENGTH_SCALE_PRIOR: Final = 4.0
MAX_CONTENTION: Final = 1.0  # at which more instances process no more than one


@dataclass(frozen=True, slots=True)
class _OperatorCurves:
    """The curve of each operator; NaN where there are too few points.

    Attributes:
        lines: (B, 2) level and contention.
        residual_variance: (B,) as a share of capacity, squared.
    """

    lines: Floats
    residual_variance: Floats


@dataclass(frozen=True, slots=True)
class _LinePrior:
    mean: Floats  # (K, 2) of level and contention
    covariance: Floats  # (K, 2, 2)


def learn_prior(
    kind: Ints,
    owner: Ints,
    observed: Floats,
    observed_per_s: Floats,
    *,
    length_scale: Floats,
    eligible: npt.NDArray[np.bool_],
) -> FleetPrior:
    """Learn the prior of every kind from the operators that are well observed.

    A kind's prior is the mean and covariance of its operators' levels and contentions.  A kind with few operators is
    drawn towards the whole fleet, and a fleet with few operators towards the constants of this module.  The error of
    an operator's fit is part of the covariance, which makes the prior wider.

    Args:
        kind: (B,) index into KINDS, -1 where it is not known.
        owner: (points,) operator of each observed point.
        observed: (points,) parallelism.
        observed_per_s: (points,) mean capacity there, records/s, positive.
        length_scale: (B,) of the operator's own fit, NaN without one.
        eligible: (B,) whether the prior may be learned from the operator.
    """
    used = eligible & (kind >= 0) & is_well_observed(owner, observed, len(kind))
    curves = _fit_operators(owner, observed, observed_per_s, len(kind))
    lines, residual_variance, kind_of_used = curves.lines[used], curves.residual_variance[used], kind[used]
    log_length = np.log(np.where(np.isfinite(length_scale), length_scale, LENGTH_SCALE_PRIOR))[used]
    one_group = np.zeros(len(kind_of_used), np.int64)

    initial = _LinePrior(
        np.array([[lines[:, 0].mean() if len(lines) else 0.0, 0.0]]),
        np.diag([LEVEL_SD_PRIOR**2, CONTENTION_SD_PRIOR**2])[None],
    )
    fleet = _pool_lines(one_group, lines, initial, 1)
    by_kind = _pool_lines(kind_of_used, lines, fleet, len(KINDS))

    fleet_variance = _pool_means(one_group, residual_variance, np.array([RESIDUAL_SD_PRIOR**2]), 1)
    variance = _pool_means(kind_of_used, residual_variance, fleet_variance, len(KINDS))
    fleet_log_length = _pool_means(one_group, log_length, np.log([LENGTH_SCALE_PRIOR]), 1)
    mean_log_length = _pool_means(kind_of_used, log_length, fleet_log_length, len(KINDS))

    operators = np.bincount(kind_of_used, minlength=len(KINDS)).astype(float)
    return FleetPrior(KINDS, operators, by_kind.mean, by_kind.covariance, np.sqrt(variance), np.exp(mean_log_length))


def is_well_observed(owner: Ints, observed: Floats, operators: int) -> npt.NDArray[np.bool_]:
    """Return (B,) whether operators were observed at enough parallelisms, (points,), over a wide enough range."""
    lowest, highest = np.full(operators, np.inf), np.zeros(operators)
    np.minimum.at(lowest, owner, observed)
    np.maximum.at(highest, owner, observed)
    return np.asarray((np.bincount(owner, minlength=operators) >= MIN_POINTS) & (highest >= MIN_RANGE * lowest))


def _fit_operators(owner: Ints, observed: Floats, observed_per_s: Floats, operators: int) -> _OperatorCurves:
    """Fit the curve of each operator by least squares of relative errors: p / C is linear in p - 1."""
    per_instance = observed_per_s / observed
    more = observed - 1.0
    weight = per_instance**2

    def total(values: Floats) -> Floats:
        return np.asarray(np.bincount(owner, values, minlength=operators), float)

    with np.errstate(divide="ignore", invalid="ignore"):
        points, weights = np.bincount(owner, minlength=operators), total(weight)
        mean_more, mean_inverse = total(weight * more) / weights, total(weight / per_instance) / weights
        centred = more - mean_more[owner]
        slope = total(weight * centred / per_instance) / total(weight * centred**2)
        intercept = mean_inverse - slope * mean_more  # 1 / capacity of one instance
        contention = np.where(intercept > 0, np.clip(slope / intercept, 0.0, MAX_CONTENTION), MAX_CONTENTION)
        levels = np.log(per_instance) + np.log1p(contention[owner] * more)
        level = total(levels) / points
        residual_variance = total((levels - level[owner]) ** 2) / (points - 2.0)
    return _OperatorCurves(np.stack([level, contention], axis=1), residual_variance)


def _pool_lines(group: Ints, lines: Floats, prior: _LinePrior, groups: int) -> _LinePrior:
    """Return mean and predictive covariance of each group, with a prior that counts as PRIOR_OPERATORS operators."""
    weight = np.bincount(group, minlength=groups) + PRIOR_OPERATORS
    totals = np.zeros((groups, 2))
    np.add.at(totals, group, lines)
    mean = (totals + PRIOR_OPERATORS * prior.mean) / weight[:, None]
    deviation, shift = lines - mean[group], prior.mean - mean
    squares = np.zeros((groups, 2, 2))
    np.add.at(squares, group, deviation[:, :, None] * deviation[:, None, :])
    squares += PRIOR_OPERATORS * (prior.covariance + shift[:, :, None] * shift[:, None, :])
    # The mean itself is uncertain: one more operator is further from it than those that it was computed from.
    return _LinePrior(mean, squares / weight[:, None, None] * (1.0 + 1.0 / weight)[:, None, None])


def _pool_means(group: Ints, values: Floats, prior: Floats, groups: int) -> Floats:
    """Return (groups,) means, with a prior mean, (1,), that counts as PRIOR_OPERATORS values."""
    weight = np.bincount(group, minlength=groups) + PRIOR_OPERATORS
    return np.asarray((np.bincount(group, values, minlength=groups) + PRIOR_OPERATORS * prior) / weight, float)
