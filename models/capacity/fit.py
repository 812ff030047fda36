"""Search for the hyperparameters of a batch of operators: a grid over length scale and ratio, then a finer one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from models.arrays import Floats
from models.capacity.capacity_samples import CapacitySamples
from models.capacity.gp import MIN_LENGTH_SCALE, Spectrum, profile, whiten

RATIOS = np.geomspace(1e-3, 1e5, 17)
FINE_RATIOS = np.geomspace(10**-0.5, 10**0.5, 7)
LENGTHS = 5  # over the whole range
REFINEMENTS = 2  # each halves the (logarithmic) step and looks to both sides


@dataclass(frozen=True, slots=True)
class KernelFit:
    """The best hyperparameters of each operator.

    Attributes:
        spectrum: of the samples at the best length scale.
        ratio: (B,) r; 0 for an operator that was seen at one parallelism only: it is the line alone.
        slope: (B,) scaled capacity per unit of parallelism.
        noise_variance: (B,) of one sample, as a share of capacity, squared.
        slope_precision: (B,) in units of 1 / noise_variance.
        log_likelihood: (B,) restricted, up to a constant of the operator.
    """

    spectrum: Spectrum
    ratio: Floats
    slope: Floats
    noise_variance: Floats
    slope_precision: Floats
    log_likelihood: Floats

    @property
    def at_bound(self) -> npt.NDArray[np.bool_]:
        """(B,) whether r ended at the end of its range: residual and noise could not be distinguished."""
        return np.asarray((self.ratio > 0) & ((self.ratio >= RATIOS[-1]) | (self.ratio <= RATIOS[0])))


def fit_kernel(samples: CapacitySamples, largest: Floats) -> KernelFit:
    """Fit every operator of a batch by restricted marginal likelihood; the largest parallelism of its job is (B,)."""
    upper = np.maximum(largest / 2.0, MIN_LENGTH_SCALE)
    alone = samples.points < 2
    parts: list[tuple[npt.NDArray[np.int64], KernelFit]] = []
    if alone.any():  # a line, whatever the length scale
        line, shortest = samples.take(alone), np.full(int(alone.sum()), MIN_LENGTH_SCALE)
        parts.append((np.flatnonzero(alone), _best_ratio(line, whiten(line, shortest), np.zeros((len(line), 1)))))
    rows = np.flatnonzero(~alone)
    if len(rows):
        steps = np.linspace(0.0, 1.0, LENGTHS)
        lengths = MIN_LENGTH_SCALE * (upper[rows, None] / MIN_LENGTH_SCALE) ** steps
        step = (upper[rows] / MIN_LENGTH_SCALE) ** (0.5 * steps[1])
        parts.append((rows, _search(samples.take(rows), lengths, step, upper[rows])))
    return _merge_in_order(parts)


def _search(samples: CapacitySamples, lengths: Floats, step: Floats, upper: Floats) -> KernelFit:
    """Try (B, L) length scales, then both neighbours of the best at ever smaller steps; sharpen r last."""
    ratios = np.broadcast_to(RATIOS, (len(samples), len(RATIOS)))
    best = _best_ratio(samples, whiten(samples, np.clip(lengths[:, 0], MIN_LENGTH_SCALE, upper)), ratios)
    for column in lengths.T[1:]:
        best = _keep_better(best, samples, np.clip(column, MIN_LENGTH_SCALE, upper), ratios)
    for _ in range(REFINEMENTS):
        centre = best.spectrum.length_scale
        for candidate in (centre / step, centre * step):
            best = _keep_better(best, samples, np.clip(candidate, MIN_LENGTH_SCALE, upper), ratios)
        step = np.sqrt(step)
    return _best_ratio(samples, best.spectrum, np.clip(best.ratio[:, None] * FINE_RATIOS, 0.0, RATIOS[-1]))


def _keep_better(best: KernelFit, samples: CapacitySamples, length_scale: Floats, ratios: Floats) -> KernelFit:
    other = _best_ratio(samples, whiten(samples, length_scale), ratios)
    wins = other.log_likelihood > best.log_likelihood

    def choose(old: Floats, new: Floats) -> Floats:
        return np.where(wins.reshape(-1, *[1] * (old.ndim - 1)), new, old)

    return _combine(best, other, choose)


def _best_ratio(samples: CapacitySamples, spectrum: Spectrum, ratios: Floats) -> KernelFit:
    result = profile(samples, spectrum, ratios)
    at = (np.arange(len(samples)), np.argmax(result.log_likelihood, axis=1))
    return KernelFit(
        spectrum,
        ratios[at],
        result.slope[at],
        result.noise_variance[at],
        result.slope_precision[at],
        result.log_likelihood[at],
    )


def _combine(one: KernelFit, other: KernelFit, combine: Callable[[Floats, Floats], Floats]) -> KernelFit:
    names = [field.name for field in fields(Spectrum)]
    spectrum = Spectrum(*(combine(getattr(one.spectrum, name), getattr(other.spectrum, name)) for name in names))
    rest = [field.name for field in fields(KernelFit)][1:]
    return KernelFit(spectrum, *(combine(getattr(one, name), getattr(other, name)) for name in rest))


def _transform(one: KernelFit, change: Callable[[Floats], Floats]) -> KernelFit:
    return _combine(one, one, lambda values, _: change(values))


def _merge_in_order(parts: list[tuple[npt.NDArray[np.int64], KernelFit]]) -> KernelFit:
    order = np.argsort(np.concatenate([rows for rows, _ in parts]), kind="stable")
    whole = parts[0][1]
    for _, part in parts[1:]:
        whole = _combine(whole, part, lambda first, second: np.concatenate((first, second)))
    return _transform(whole, lambda values: values[order])
