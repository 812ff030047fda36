"""The sizes that an evaluation compares: those that the load may need, and wider ones to work a backlog off."""

from __future__ import annotations

from typing import Final

import numpy as np

from models.arrays import Ints
from models.policies.tidewise.job_sizes import JobSizes
from models.programme.load_outlook import LoadOutlook

_FAR: Final = 2.5  # standard deviations of the load beyond which sizes do not matter
_NARROW: Final = 0.85
_WIDER: Final = (1.15, 1.35, 1.65, 2.0, 9.0)  # times the slots that the load may need
_MOST: Final = 22


def select_sizes(sizes: JobSizes, outlook: LoadOutlook) -> Ints:
    """Return the rows of the sizes that can matter, the running one first."""
    far, transient = outlook.sd * _FAR, _FAR * outlook.noise
    high = float(np.exp((outlook.mean + far).max() + transient)) - outlook.offset
    low = max(float(np.exp((outlook.mean - far).min() - transient)) - outlook.offset, 0.0)
    least, most = sizes.capacity_per_s.min(axis=1), sizes.capacity_per_s.max(axis=1)
    order = np.argsort(sizes.slots[1:], kind="stable") + 1
    if not len(order):
        return np.zeros(1, np.int64)
    enough = np.flatnonzero(least[order] >= high)
    last = int(enough[0]) if len(enough) else len(order) - 1
    first = min(max(int((most[order] < _NARROW * low).sum()) - 1, 0), last)
    chosen = set(range(first, last + 1))
    if len(chosen) > _MOST - len(_WIDER):
        chosen = set(np.linspace(first, last, _MOST - len(_WIDER)).round().astype(int).tolist())
    slots = sizes.slots[order]
    for share in _WIDER:
        chosen.add(min(int(np.searchsorted(slots, share * slots[last])), len(order) - 1))
    return np.array([0, *order[sorted(chosen)].tolist()], np.int64)
