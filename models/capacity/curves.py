"""From samples to capacity curves, and how uncertain a curve is beyond the observed parallelisms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from models.arrays import Floats
from models.capacity.capacity_samples import CapacitySamples
from models.capacity.fit import fit_kernel
from models.capacity.gp import predict


@dataclass(frozen=True, slots=True)
class Curves:
    """Fitted capacities of B operators on the grid 1..P, without the widening beyond the observed range.

    Attributes:
        mean_per_s, sd_per_s: (B, P) records/s.
        slope_per_s: (B,) of the linear mean, records/s per unit of parallelism.
        length_scale, signal_ratio: (B,) hyperparameters; NaN for an operator observed at one parallelism only.
        noise_share: (B,) standard deviation of one sample as a share of capacity.
        at_bound: (B,) whether noise and residual could not be distinguished.
    """

    mean_per_s: Floats
    sd_per_s: Floats
    slope_per_s: Floats
    length_scale: Floats
    signal_ratio: Floats
    noise_share: Floats
    at_bound: npt.NDArray[np.bool_]


def fit_curves(samples: CapacitySamples, largest: Floats, top: int) -> Curves:
    """Fit a batch of operators, (B,) the largest parallelism of each one's job, and evaluate their curves at 1..top."""
    result = fit_kernel(samples, largest)
    mean, sd = predict(
        samples,
        result.spectrum,
        np.arange(1.0, top + 1),
        ratio=result.ratio,
        slope=result.slope,
        noise_variance=result.noise_variance,
        slope_precision=result.slope_precision,
    )
    line_only = samples.points < 2
    return Curves(
        mean_per_s=np.maximum(mean, 0.0),
        sd_per_s=sd,
        slope_per_s=result.slope * samples.scale_per_s,
        length_scale=np.where(line_only, np.nan, result.spectrum.length_scale),
        signal_ratio=np.where(line_only, np.nan, result.ratio),
        noise_share=np.sqrt(result.noise_variance),
        at_bound=result.at_bound,
    )
