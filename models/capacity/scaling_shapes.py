"""How capacity may grow with parallelism: a family of mean curves over which a fit averages.

    h(p) = u / (1 + c (u - 1) + b u (u - 1)),   u = p  or  u = G / ceil(G / p)

| name | meaning | source |
| --- | --- | --- |
| c | contention | Gunther, law of scalability |
| b | coherency: with it more instances may process less in all | Gunther |
| G | key groups, `maxParallelism` of Flink's REST | Flink |
| u | instances that work: keyed state comes in whole key groups; the subtask with most, ceil(G / p), limits | |
"""

from __future__ import annotations

from typing import Final

import numpy as np

from models.arrays import Floats

# Values and their prior probability.
_CONTENTION: Final = {0.0: 0.14, 0.005: 0.16, 0.01: 0.17, 0.02: 0.18, 0.04: 0.16, 0.08: 0.11, 0.16: 0.06, 0.32: 0.02}
_COHERENCY: Final = {0.0: 0.5, 3e-4: 0.2, 1e-3: 0.2, 4e-3: 0.1}
_PLAIN: Final = [(c, b, 0.5 * at * then) for c, at in _CONTENTION.items() for b, then in _COHERENCY.items()]
_STAIRS: Final = [(c, 0.0, 0.5 * at) for c, at in _CONTENTION.items()]
_CONTENTIONS, _COHERENCIES, _PRIOR = (np.array(column) for column in zip(*_PLAIN, *_STAIRS, strict=True))
_BY_KEY_GROUPS: Final = np.arange(len(_PRIOR)) >= len(_PLAIN)

LOG_PRIOR: Final = np.log(_PRIOR)
"""(S,) log of the prior probability of each shape; u = p and u by key groups are equally probable."""


def log_shapes(top: int, key_groups: float) -> Floats:
    """Return (S, top) ln h of each shape at parallelism 1..top; without known key groups (NaN) u = p everywhere."""
    parallelism = np.arange(1.0, top + 1)
    stairs = parallelism
    if np.isfinite(key_groups) and key_groups >= 1:
        stairs = np.minimum(key_groups / np.ceil(key_groups / parallelism), parallelism)
    working = np.where(_BY_KEY_GROUPS[:, None], stairs, parallelism)
    divisor = 1.0 + (working - 1.0) * (_CONTENTIONS[:, None] + _COHERENCIES[:, None] * working)
    return np.asarray(np.log(working) - np.log(divisor), float)
