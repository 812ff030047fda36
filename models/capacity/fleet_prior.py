"""The fleet prior: how operators of a kind scale, for operators that were observed too little to have an own model.

Model of an operator of kind k, in logarithms, so that operators of any size can be pooled:

    ln C(p) = a + ln p - ln(1 + c (p - 1)) + h(p) + noise
    (a, c) ~ N(m_k, S_k),   h ~ GP(0, s_k^2 exp(-d^2 / (2 l_k^2)))

| name | meaning | unit |
| --- | --- | --- |
| a | level: ln of the capacity of one instance | ln(records/s) |
| c | contention: how the slope of capacity over parallelism falls; 0 scales linearly | 1 |
| m_k, S_k | mean and covariance of (a, c) over the operators of the kind | |
| s_k | residual standard deviation: how far operators are from such a curve | share of capacity |
| l_k | length scale of the residual | parallelism |

The curve is Gunther's law of scalability without its coherency term.  Empirical Bayes: well-observed operators give m,
S, s and l (:mod:`models.capacity.prior_learning`); any other operator gets the posterior of a Gaussian process with
this prior (:mod:`models.capacity.prior_posterior`).

Deviation: ContTune learns every operator alone.  Deviation: what is pooled is how the slope falls, not the slope of
:mod:`models.capacity.gp` in records/s, which depends on how large the operators are and not on how they scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.arrays import Floats

# An operator has a good model of its own, and is used to learn the prior, when it was observed at so many
# parallelisms and the largest is so many times the smallest.
MIN_POINTS: Final = 3
MIN_RANGE: Final = 2.0
_COLUMNS: Final = (
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
        kinds: names of the kinds.
        operators: (K,) number of operators that it was learned from.
        mean: (K, 2) mean of level and contention.
        covariance: (K, 2, 2) their covariance, for one more operator of the kind.
        residual_sd: (K,) s, as a share of capacity.
        length_scale: (K,) l, in units of parallelism.
    """

    kinds: tuple[str, ...]
    operators: Floats
    mean: Floats
    covariance: Floats
    residual_sd: Floats
    length_scale: Floats

    def to_columns(self) -> dict[str, Floats]:
        """Return the prior as columns of a table, (K,) each."""
        columns = (
            self.operators,
            *self.mean.T,
            self.covariance[:, 0, 0],
            self.covariance[:, 0, 1],
            self.covariance[:, 1, 1],
            self.residual_sd,
            self.length_scale,
        )
        return dict(zip(_COLUMNS, columns, strict=True))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that a bundle of models stores."""
        return {_NAMES: np.array(self.kinds), _VALUES: np.stack(list(self.to_columns().values()), axis=1)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> FleetPrior | None:
        """Read what :meth:`to_arrays` made; None where there is no prior, or it was learned from no operator."""
        if _VALUES not in arrays:
            return None
        operators, level, contention, var_level, covariance, var_contention, residual_sd, length = arrays[_VALUES].T
        matrix = np.stack([var_level, covariance, covariance, var_contention], axis=1).reshape(-1, 2, 2)
        kinds = tuple(map(str, arrays[_NAMES]))
        prior = cls(kinds, operators, np.stack([level, contention], axis=1), matrix, residual_sd, length)
        return prior if operators.sum() else None
