"""Errors of past forecasts, sorted once for all origins, and their weighted quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of one method from some origins, in order, by group of leads.

    Attributes:
        size: sorted errors, records/s, NaN last, shape (n, G, S).
        cell: which (origin, lead) each is, P H where there is none, shape (n, G, S).
    """

    size: Floats
    cell: Ints

    def quantiles(self, levels: Floats, weights: Floats) -> Floats:
        """Return weighted quantiles, shape (L, n, G); NaN where a group has no weight.

        ``levels`` has shape (L, n) and ``weights`` (P, H): an error of weight zero is left out.
        """
        below = np.append(weights.ravel(), 0.0).take(self.cell)
        np.cumsum(below, axis=2, out=below)
        total = below[:, :, -1]
        at = _find_first(below, levels[:, :, None] * total * (1 - 1e-12))
        row = np.arange(total.size).reshape(total.shape) * below.shape[2]
        return np.where(total > 0, self.size.ravel().take(row + at), np.nan)


@dataclass(frozen=True, slots=True)
class SortedErrors:
    """Errors of one method from P origins at H leads, all leads of a series in one order.

    What is chosen of them keeps the order, so that the windows of several days are sorted once.

    Attributes:
        size: sorted errors, records/s, NaN last, shape (n, P H).
        cell: which (origin, lead) each is, shape (n, P H).
        leads: H.
    """

    size: Floats
    cell: Ints
    leads: int

    @classmethod
    def of(cls, errors: Floats) -> SortedErrors:
        """Sort errors of shape (P, n, H)."""
        flat = errors.transpose(1, 0, 2).reshape(errors.shape[1], -1)
        cell = np.argsort(flat, axis=1)  # NaN goes last
        return cls(np.take_along_axis(flat, cell, axis=1), cell, errors.shape[2])

    def select(self, low: int, stop: int) -> SortedErrors:
        """Return the errors of origins ``[low, stop)``, whose cells are counted from ``low``."""
        first, last = low * self.leads, stop * self.leads
        if first == 0 and last == self.cell.shape[1]:
            return self
        return self._pick((self.cell >= first) & (self.cell < last), first)

    def _pick(self, chosen: Bools, first: int) -> SortedErrors:
        """Return some errors, as many of each series, with cells counted from ``first``."""
        shape, at = (len(chosen), -1), np.flatnonzero(chosen)
        return SortedErrors(self.size.take(at).reshape(shape), self.cell.take(at).reshape(shape) - first, self.leads)

    def pool(self) -> Errors:
        """Return all leads as one group."""
        return Errors(self.size[:, None], self._known_cells()[:, None])

    def group(self, group_of_lead: Ints) -> Errors:
        """Return the leads in groups, (H,) ascending from 0."""
        n, count = self.cell.shape
        origins = count // self.leads
        sizes = origins * np.bincount(group_of_lead)  # the last group may be smaller than the others
        group = np.tile(group_of_lead, origins).astype(np.uint16)[self.cell]
        order = np.argsort(group, axis=1, kind="stable")
        shape = n, len(sizes), int(sizes.max())
        place = np.flatnonzero(np.arange(shape[2]) < sizes[:, None])
        size, cell = np.full((n, shape[1] * shape[2]), np.nan), np.full((n, shape[1] * shape[2]), count)
        size[:, place] = np.take_along_axis(self.size, order, axis=1)
        cell[:, place] = np.take_along_axis(self._known_cells(), order, axis=1)
        return Errors(size.reshape(shape), cell.reshape(shape))

    def _known_cells(self) -> Ints:
        return np.where(np.isnan(self.size), self.cell.shape[1], self.cell)


def choose_series(every: list[SortedErrors], choice: Ints) -> SortedErrors:
    """Return errors whose series come from different orders: ``choice``, (n,), says from which."""
    size, cell = every[0].size, every[0].cell
    for place, one in enumerate(every[1:], 1):
        mine = (choice == place)[:, None]
        size, cell = np.where(mine, one.size, size), np.where(mine, one.cell, cell)
    return SortedErrors(size, cell, every[0].leads)


def _find_first(values: Floats, least: Floats) -> Ints:
    """Return where values that ascend along the last axis reach some least ones, which the last one does.

    Args:
        values: (n, G, S).
        least: (L, n, G).
    """
    flat, row = values.ravel(), np.arange(least[0].size).reshape(least.shape[1:]) * values.shape[2]
    low, high = np.zeros(least.shape, np.int64), np.full(least.shape, values.shape[2] - 1)
    for _ in range((values.shape[2] - 1).bit_length()):
        middle = (low + high) // 2
        reached = flat.take(row + middle) >= least
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return np.asarray(np.minimum(low, high))
