"""Errors of past forecasts, sorted once, and their weighted quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of one method, sorted once for all origins and quantiles.

    Attributes:
        size: sorted errors, records/s, NaN last, shape (n, G, S).
        cell: which (origin, lead) each is, P H where there is none, shape (n, G, S).
    """

    size: Floats
    cell: Ints

    @classmethod
    def of(cls, errors: Floats, group: int) -> Errors:
        """Sort errors of shape (P, n, H) in groups of ``group`` leads; group = H puts all leads together."""
        count, n, leads = errors.shape
        groups = -(-leads // group)
        padded = np.full((n, count, groups * group), np.nan)
        padded[:, :, :leads] = errors.transpose(1, 0, 2)
        cells = np.full((count, groups * group), count * leads)
        cells[:, :leads] = np.arange(count * leads).reshape(count, leads)

        def group_bins(values: Floats | Ints) -> Floats | Ints:
            return values.reshape(-1, count, groups, group).transpose(0, 2, 1, 3).reshape(-1, groups, count * group)

        flat = group_bins(padded)
        order = np.argsort(flat, axis=2)  # NaN goes last
        size = np.asarray(np.take_along_axis(flat, order, axis=2), np.float64)
        cell = np.broadcast_to(group_bins(cells), flat.shape)
        sorted_cell = np.where(np.isnan(size), count * leads, np.take_along_axis(cell, order, axis=2))
        return cls(size, np.asarray(sorted_cell, np.int64))

    def quantiles(self, levels: Floats, weights: Floats) -> Floats:
        """Return weighted quantiles, shape (L, n, G); NaN where a group has no weight.

        ``levels`` has shape (L, n) and ``weights`` (P, H): an error of weight zero is left out.
        """
        below = np.cumsum(np.append(weights.ravel(), 0.0)[self.cell], axis=2)
        total = below[:, :, -1:]
        result = np.empty((len(levels), *self.size.shape[:2]))
        for place, level in enumerate(levels):
            reached = below >= level[:, None, None] * total * (1 - 1e-12)
            at = np.argmax(reached, axis=2)[:, :, None]
            result[place] = np.take_along_axis(self.size, at, axis=2)[:, :, 0]
        return np.where(total[None, :, :, 0] > 0, result, np.nan)
