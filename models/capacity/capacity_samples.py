"""Observed capacities of a batch of operators as padded arrays.

Several samples at one parallelism enter as count, mean and squared deviations: for a Gaussian process with Gaussian
noise these are sufficient, so fifty samples at ten parallelisms cost as much as ten and give the same posterior.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Ints

# Noise is taken as proportional to capacity, but not below this share of the operator's largest capacity: a tiny
# capacity at p = 1 would otherwise be trusted without limit.
MIN_NOISE_SCALE = 0.02


@dataclass(frozen=True, slots=True)
class CapacitySamples:
    """Capacities of B operators at up to m parallelisms each; a count of 0 is padding.

    Attributes:
        parallelism: (B, m) where capacity was observed, ascending, padding last.
        count: (B, m) samples there.
        mean_per_s: (B, m) their mean, records/s; 0 in the padding.
        squares: (B, m) sum of squared deviations from that mean, (records/s)^2.
        doubt: (B, m) standard deviation of ln C that light use leaves at a point, beyond the operator's others: see
            models.capacity.busy_windows.
    """

    parallelism: Floats
    count: Floats
    mean_per_s: Floats
    squares: Floats
    doubt: Floats = field(default_factory=lambda: np.zeros((1, 1)))

    def __len__(self) -> int:
        return len(self.count)

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """(B, m) which entries are not padding."""
        return np.asarray(self.count > 0)

    @property
    def points(self) -> Ints:
        """(B,) distinct parallelisms."""
        return np.asarray(self.present.sum(axis=1), np.int64)

    @property
    def scale_per_s(self) -> Floats:
        """(B,) largest mean capacity: capacities are divided by it before a fit."""
        return np.asarray(self.mean_per_s.max(axis=1), float)

    @property
    def noise_scale(self) -> Floats:
        """(B, m) what the noise is proportional to, in scaled capacity."""
        return np.maximum(self.mean_per_s / self.scale_per_s[:, None], MIN_NOISE_SCALE)

    @property
    def relative_squares(self) -> Floats:
        """(B,) squared deviations of single samples, relative to the noise scale, pooled over parallelisms."""
        scaled = self.squares / self.scale_per_s[:, None] ** 2 / self.noise_scale**2
        return np.asarray(np.where(self.present, scaled, 0.0).sum(axis=1), float)

    def take(self, rows: npt.NDArray[np.bool_] | Ints) -> CapacitySamples:
        """Return the samples of some operators."""
        doubt = np.broadcast_to(self.doubt, self.count.shape)[rows]
        return CapacitySamples(
            self.parallelism[rows], self.count[rows], self.mean_per_s[rows], self.squares[rows], doubt
        )


def pack(
    owner: npt.ArrayLike,
    parallelism: npt.ArrayLike,
    count: npt.ArrayLike,
    mean: npt.ArrayLike,
    squares: npt.ArrayLike,
    *,
    doubt: npt.ArrayLike = 0.0,
) -> CapacitySamples:
    """Arrange one row per (operator, parallelism) into padded arrays.

    All are (rows,): the operator 0..B-1, each of which has a row, and the values of :class:`CapacitySamples`.

    Raises:
        ValueError: a count or a mean is not positive.
    """
    order = np.lexsort((np.asarray(parallelism), np.asarray(owner)))
    rows = np.asarray(owner, np.int64)[order]
    doubts = np.broadcast_to(np.asarray(doubt, float), rows.shape)
    columns = [np.asarray(values, float)[order] for values in (parallelism, count, mean, squares, doubts)]
    if rows.size and (columns[1].min() < 1 or not columns[2].min() > 0):
        raise ValueError("counts must be at least 1 and capacities positive; drop rows without a rate before a fit")
    sizes = np.bincount(rows)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    padded = []
    for values in columns:
        block = np.zeros((len(sizes), int(sizes.max(initial=1))))
        block[rows, place] = values
        padded.append(block)
    return CapacitySamples(*padded)
