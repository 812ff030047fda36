"""What the fleet knows of an operator that was hardly seen: how operators of its kind scale.

Model of an operator of kind k, in logarithms, so that operators of any size teach each other:

    ln C(p) = a + ln p - ln(1 + c (p - 1)) + h(p) + noise
    (a, c) ~ N(m_k, S_k),   h ~ GP(0, s_k^2 exp(-d^2 / (2 l_k^2)))

| name | meaning | unit |
| --- | --- | --- |
| a | level: ln of the capacity of one instance | ln(records/s) |
| c | contention: how the slope of capacity over parallelism falls; 0 scales linearly | 1 |
| m_k, S_k | mean of (a, c) over the kind's operators, and their spread around it: the variance of the prior | |
| s_k | how far operators bend away from such a curve | share of capacity |
| l_k | length scale of the bend | parallelism |

The curve is Gunther's law of scalability without its term of coherency.  Well-observed operators teach m, S, s and l;
the posterior of any other is that of a Gaussian process with this prior ("Gaussian Processes for Machine Learning",
2.7), the curve taken as linear in c around the kind's.  An operator seen at one parallelism has a level of its own,
whatever the fleet's, and borrows the contention; one that was never seen borrows both.

Deviation: ContTune learns every operator alone.  Deviation: what is shared is how the slope falls, not the slope of
:mod:`models.capacity.gp` in records/s, which would say how large the fleet's operators are and not how they scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from include.domain.graph import JobGraph
from models.capacity.gp import kernel
from models.capacity.kinds import KINDS, kind_of
from models.job_models import CapacityCurve, Floats, Ints, JobModels

# An operator has a good model of its own, and teaches others, from so many parallelisms and so wide a range on.
OWN_POINTS: Final = 3
OWN_RANGE: Final = 2.0
# What is believed before any operator is seen, worth so many operators: linear scaling, off by about what
# models.capacity.curves takes it to be (20% from 4 instances to 8), and levels within a factor of e.
PRIOR_OPERATORS: Final = 2.0
LEVEL_SD_PRIOR: Final = 1.0
CONTENTION_SD_PRIOR: Final = 0.05
RESIDUAL_SD_PRIOR: Final = 0.03
LENGTH_SCALE_PRIOR: Final = 4.0
CONTENTION_MOST: Final = 1.0  # more instances then process no more than one
# A level that spreads more over its kind tells a planner nothing but to take all slots: the operator then stays without
# a model and keeps its parallelism until it is seen.
LEVEL_SD_MOST: Final = 0.5
OWN_LEVEL_SD: Final = 10.0  # of an operator that was seen: flat, over a factor of e^10 to both sides
_FIELDS: Final = (
    "operators",
    "level",
    "contention",
    "var_level",
    "covariance",
    "var_contention",
    "residual_sd",
    "length_scale",
)
_NAMES, _VALUES = "fleet_kinds", "fleet_prior"


@dataclass(frozen=True, slots=True)
class FleetPrior:
    """Prior of each of K kinds of operators; see the table of the module.

    Attributes:
        kinds: their names.
        operators: (K,) operators that taught it.
        centre: (K, 2) mean of level and contention.
        spread: (K, 2, 2) their covariance over operators, for one more operator of the kind.
        residual_sd: (K,) s, as a share of capacity.
        length_scale: (K,) l, in units of parallelism.
    """

    kinds: tuple[str, ...]
    operators: Floats
    centre: Floats
    spread: Floats
    residual_sd: Floats
    length_scale: Floats

    def rows(self) -> dict[str, Floats]:
        """Return the prior as columns of a table, (K,) each."""
        columns = (
            self.operators,
            *self.centre.T,
            self.spread[:, 0, 0],
            self.spread[:, 0, 1],
            self.spread[:, 1, 1],
            self.residual_sd,
            self.length_scale,
        )
        return dict(zip(_FIELDS, columns, strict=True))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays as which it lies in a bundle of models."""
        return {_NAMES: np.array(self.kinds), _VALUES: np.stack(list(self.rows().values()), axis=1)}

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> FleetPrior | None:
        """Read what :meth:`to_arrays` made; None where there is none or nothing taught it."""
        if _VALUES not in arrays:
            return None
        operators, level, contention, var_level, covariance, var_contention, residual_sd, length = arrays[_VALUES].T
        spread = np.stack([var_level, covariance, covariance, var_contention], axis=1).reshape(-1, 2, 2)
        kinds = tuple(map(str, arrays[_NAMES]))
        found = cls(kinds, operators, np.stack([level, contention], axis=1), spread, residual_sd, length)
        return found if operators.sum() else None


def well_observed(owner: Ints, observed: Floats, operators: int) -> npt.NDArray[np.bool_]:
    """Return (B,) which operators were seen at enough parallelisms, over a wide enough range.

    Args:
        owner: (points,) operator of each observed point.
        observed: (points,) parallelism, distinct within an operator.
        operators: B.
    """
    lowest, highest = np.full(operators, np.inf), np.zeros(operators)
    np.minimum.at(lowest, owner, observed)
    np.maximum.at(highest, owner, observed)
    return np.asarray((np.bincount(owner, minlength=operators) >= OWN_POINTS) & (highest >= OWN_RANGE * lowest))


def learn_prior(
    kind: Ints,
    owner: Ints,
    observed: Floats,
    observed_per_s: Floats,
    *,
    length_scale: Floats,
    teaches: npt.NDArray[np.bool_],
) -> FleetPrior:
    """Learn the prior of every kind from the operators that are well observed.

    Each has its own curve, by least squares of relative errors: p / C is linear in p - 1.  A kind's prior is mean and
    covariance of their levels and contentions; few operators are drawn to the whole fleet's, and few in the fleet to
    what is believed before.  The error of a single fit is part of the spread, which errs to the careful side.

    Args:
        kind: (B,) index into KINDS, -1 where it is not known.
        owner: (points,) operator of each observed point.
        observed: (points,) parallelism.
        observed_per_s: (points,) mean capacity seen there, records/s, positive.
        length_scale: (B,) of the operator's own fit, NaN without one.
        teaches: (B,) which may teach.
    """
    count = len(kind)
    good = teaches & (kind >= 0) & well_observed(owner, observed, count)
    per_instance = observed_per_s / observed
    more = observed - 1.0
    weight = per_instance**2

    def total(values: Floats) -> Floats:
        return np.asarray(np.bincount(owner, values, minlength=count), float)

    with np.errstate(divide="ignore", invalid="ignore"):
        points, weights = np.bincount(owner, minlength=count), total(weight)
        mean_more, mean_inverse = total(weight * more) / weights, total(weight / per_instance) / weights
        apart = more - mean_more[owner]
        steepness = total(weight * apart / per_instance) / total(weight * apart**2)
        alone = mean_inverse - steepness * mean_more  # 1 / capacity of one instance
        contention = np.where(alone > 0, np.clip(steepness / alone, 0.0, CONTENTION_MOST), CONTENTION_MOST)
        levels = np.log(per_instance) + np.log1p(contention[owner] * more)
        level = total(levels) / points
        residual_sd = total((levels - level[owner]) ** 2) / (points - 2.0)
    lines = np.stack([level, contention], axis=1)[good]
    of, bends = kind[good], residual_sd[good]
    lengths = np.log(np.where(np.isfinite(length_scale), length_scale, LENGTH_SCALE_PRIOR))[good]
    everywhere = np.zeros(len(of), np.int64)
    first = _Belief(
        np.array([[lines[:, 0].mean() if len(lines) else 0.0, 0.0]]),
        np.diag([LEVEL_SD_PRIOR**2, CONTENTION_SD_PRIOR**2])[None],
    )
    fleet = _drawn(everywhere, lines, first, 1)
    own = _drawn(of, lines, fleet, len(KINDS))
    variance = _shares(of, bends, _shares(everywhere, bends, np.array([RESIDUAL_SD_PRIOR**2]), 1), len(KINDS))
    logs = _shares(of, lengths, _shares(everywhere, lengths, np.log([LENGTH_SCALE_PRIOR]), 1), len(KINDS))
    operators = np.bincount(of, minlength=len(KINDS)).astype(float)
    return FleetPrior(KINDS, operators, own.centre, own.spread, np.sqrt(variance), np.exp(logs))


@dataclass(frozen=True, slots=True)
class _Belief:
    centre: Floats  # (K, 2)
    spread: Floats  # (K, 2, 2)


def _drawn(group: Ints, lines: Floats, before: _Belief, groups: int) -> _Belief:
    """Return mean and predictive covariance per group, with a belief that counts as PRIOR_OPERATORS operators."""
    weight = np.bincount(group, minlength=groups) + PRIOR_OPERATORS
    totals = np.zeros((groups, 2))
    np.add.at(totals, group, lines)
    centre = (totals + PRIOR_OPERATORS * before.centre) / weight[:, None]
    away, moved = lines - centre[group], before.centre - centre
    squares = np.zeros((groups, 2, 2))
    np.add.at(squares, group, away[:, :, None] * away[:, None, :])
    squares += PRIOR_OPERATORS * (before.spread + moved[:, :, None] * moved[:, None, :])
    # The mean itself is uncertain: one more operator is further off than those that the mean was made from.
    return _Belief(centre, squares / weight[:, None, None] * (1.0 + 1.0 / weight)[:, None, None])


def _shares(group: Ints, values: Floats, before: Floats, groups: int) -> Floats:
    """Return (groups,) means, with a belief, (1,), that counts as PRIOR_OPERATORS values."""
    weight = np.bincount(group, minlength=groups) + PRIOR_OPERATORS
    return np.asarray((np.bincount(group, values, minlength=groups) + PRIOR_OPERATORS * before) / weight, float)


def posterior(
    prior: FleetPrior, kind: Ints, seen: Floats, seen_per_s: Floats, *, noise_share: Floats, top: int
) -> tuple[Floats, Floats]:
    """Return median and standard deviation of the capacity of B operators at 1..top, both (B, top), records/s.

    Args:
        prior: of their kinds.
        kind: (B,) index into ``prior.kinds``.
        seen: (B, m) parallelisms at which they were seen, NaN in the padding; m may be 0.
        seen_per_s: (B, m) mean capacity there, records/s.
        noise_share: (B, m) standard deviation of that mean, as a share of it.
        top: largest parallelism of the grid.
    """
    known = np.isfinite(seen)
    at = np.where(known, seen, 1.0)
    grid = np.broadcast_to(np.arange(1.0, top + 1), (len(kind), top))
    centre = prior.centre[kind]
    flat = np.diag([OWN_LEVEL_SD**2, 0.0]) + prior.spread[kind] * np.diag([0.0, 1.0])
    some = known.sum(axis=1) > 0
    spread = np.where(some[:, None, None], flat, prior.spread[kind])
    residual_sd, length = prior.residual_sd[kind][:, None, None], prior.length_scale[kind][:, None, None]

    def expected(where: Floats) -> Floats:
        return np.asarray(centre[:, :1] + np.log(where) - np.log1p(centre[:, 1:] * (where - 1.0)), float)

    def slopes(where: Floats) -> Floats:
        """Return how the expectation moves with level and contention, (B, n, 2)."""
        moved = -(where - 1.0) / (1.0 + centre[:, 1:] * (where - 1.0))
        return np.stack([np.ones_like(where), moved], axis=-1)

    def covariance(one: Floats, other: Floats) -> Floats:
        smooth = residual_sd**2 * kernel(one[:, :, None] - other[:, None, :], length)
        return np.asarray(slopes(one) @ spread @ slopes(other).transpose(0, 2, 1) + smooth, float)

    variance = np.einsum("bpi,bij,bpj->bp", slopes(grid), spread, slopes(grid)) + prior.residual_sd[kind][:, None] ** 2
    # Padding is an observation of nothing: it varies with nothing else.
    both = known[:, :, None] & known[:, None, :]
    noise = np.where(known, noise_share, 1.0) ** 2
    inner = np.where(both, covariance(at, at), 0.0) + noise[:, :, None] * np.eye(seen.shape[1])
    cross = np.where(known[:, None, :], covariance(grid, at), 0.0)
    surprise = np.where(known, np.log(np.where(known, seen_per_s, 1.0)) - expected(at), 0.0)
    gain = np.linalg.solve(inner, cross.transpose(0, 2, 1)).transpose(0, 2, 1)
    mean = expected(grid) + np.einsum("bpm,bm->bp", gain, surprise)
    variance = np.maximum(variance - (gain * cross).sum(axis=2), 0.0)
    # The median, not the larger mean of a lognormal: a wide prior must not promise more.
    median = np.exp(mean)
    return median, median * np.sqrt(np.expm1(variance))


def borrowed(models: JobModels, graph: JobGraph, prior: FleetPrior | None, slots_max: int) -> JobModels:
    """Return a job's models in which operators that were hardly seen have their kind's prior, and what was seen.

    An operator that was never seen stays without a model where levels of its kind differ by more than
    :data:`LEVEL_SD_MOST`.

    Args:
        models: of the job.
        graph: of the job, for the kinds.
        prior: of the fleet; None leaves everything as it is.
        slots_max: most slots of the job, the grid of an operator without a curve.
    """
    if prior is None:
        return models
    feeds = {name for operator in graph.operators for name in operator.upstream}
    chosen, kinds, grids = [], [], []
    for operator in graph.operators:
        curve = models.capacity.get(operator.name)
        if curve is not None and _own(curve):
            continue
        kind = prior.kinds.index(kind_of(operator.name, len(operator.upstream), int(operator.name in feeds)))
        if curve is None and prior.spread[kind, 0, 0] > LEVEL_SD_MOST**2:
            continue
        chosen.append(operator.name)
        kinds.append(kind)
        grids.append(min(operator.max_parallelism, slots_max) if curve is None else len(curve.parallelism))
    if not chosen:
        return models
    curves = [models.capacity.get(name) for name in chosen]
    width = max(len(curve.observed) if curve else 0 for curve in curves)
    seen, per_s, noise = (np.full((len(chosen), width), np.nan) for _ in range(3))
    for row, curve in enumerate(curves):
        if curve is not None:
            places = slice(0, len(curve.observed))
            seen[row, places], per_s[row, places] = curve.observed, curve.observed_per_s
            # What a fit of the operator alone leaves open where it was seen: the noise of the means.
            noise[row, places] = curve.sd_per_s[curve.observed - 1] / curve.observed_per_s
    mean, sd = posterior(prior, np.array(kinds), seen, per_s, noise_share=noise, top=max(grids))
    found = {
        name: _curve(curves[row], mean[row, : grids[row]], sd[row, : grids[row]], prior.length_scale[kinds[row]])
        for row, name in enumerate(chosen)
    }
    return replace(models, capacity={**models.capacity, **found})


def _own(curve: CapacityCurve) -> bool:
    return len(curve.observed) >= OWN_POINTS and bool(curve.observed[-1] >= OWN_RANGE * curve.observed[0])


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
