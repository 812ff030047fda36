"""Expected figures of a configuration over some bins: capacity, utilisation, risk, recovery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from models.arrays import Floats, Ints
from models.bundle.job_models import RecoveryModel
from models.capacity.interval_calibration import half_widths
from models.capacity.lower_tail import sd_towards
from models.scheduling.demand import LEVELS, MEDIAN, Demand, quantiles_at_scores
from models.scheduling.need import CapacityBounds

# The load's distribution at evenly spaced normal scores: what matters for lateness lies in the upper tail.
_SCORES = np.linspace(-4.0, 4.0, 65)
_WEIGHTS = np.exp(-(_SCORES**2) / 2) / np.exp(-(_SCORES**2) / 2).sum()
_Q90 = LEVELS.index(0.9)


@dataclass(frozen=True, slots=True)
class Expectation:
    """Figures of a configuration at the worst of its bins; infinite where nothing limits or nothing recovers.

    Attributes:
        load_q50_per_s, load_q90_per_s: highest load of the bins, all sources together, records/s.
        capacity_per_s: source records/s that the configuration sustains at the bin with the least headroom.
        capacity_lower_per_s, capacity_upper_per_s: the same at mean -+ z standard deviations.
        utilisation: q50 load / capacity at that bin.
        p_late: probability that load exceeds capacity, of the bin where it is highest.
        recovery_s: after a failure at that bin, at q50 load; infinite when it would never catch up.
        late_minutes: expected while the configuration runs; None of a policy that does not price them.
    """

    load_q50_per_s: float
    load_q90_per_s: float
    capacity_per_s: float
    capacity_lower_per_s: float
    capacity_upper_per_s: float
    utilisation: float
    p_late: float
    recovery_s: float
    late_minutes: float | None = None


@dataclass(frozen=True, slots=True)
class Outlook:
    """Inputs of an expectation.

    Attributes:
        demand: of the job.
        bounds: capacity of the operators that have a model.
        recovery: of the job.
        z: half-width of the capacity's interval in standard deviations.
    """

    demand: Demand
    bounds: Mapping[str, CapacityBounds]
    recovery: RecoveryModel
    z: float

    def _select_modelled(self, parallelism: Ints, z: float = 0.0) -> tuple[list[int], Floats, Floats]:
        """Return rows of the operators that may limit, and mean (or quantile at z) and deviation there, (M,) each."""
        known = self.demand.is_known
        rows = [row for row, name in enumerate(self.demand.operators) if name in self.bounds and known[row]]
        names = [self.demand.operators[row] for row in rows]
        index = [int(self.bounds[name].index_of(parallelism[row])) for row, name in zip(rows, names, strict=True)]
        mean = np.array([self.bounds[name].mean_per_s[at] for name, at in zip(names, index, strict=True)], float)
        sd = np.array([self.bounds[name].sd_per_s[at] for name, at in zip(names, index, strict=True)], float)
        tails = [(self.bounds[name].tail_ratio, at) for name, at in zip(names, index, strict=True)]
        tail = np.array([1.0 if ratio is None else ratio[at] for ratio, at in tails], float)
        return rows, mean + half_widths(z, tail) * sd, sd

    def capacity_per_s(self, parallelism: Ints, bins: slice, *, z: float = 0.0) -> Floats:
        """Return (T',) source records/s that the configuration sustains in each bin: min over operators.

        An operator's capacity counts in source records: capacity x load / its input rate, in the bin's own mix of
        sources.  Infinite where no operator has a model or no record comes.
        """
        rows, quantile, _ = self._select_modelled(parallelism, z)
        load = self.demand.load_per_s[_Q90, bins]
        rates = self.demand.rates_per_s[_Q90][rows, bins]  # (M, T')
        with np.errstate(divide="ignore", invalid="ignore"):
            per_operator = np.maximum(quantile, 0.0)[:, None] * load / rates
        return np.asarray(np.min(np.where(rates > 0, per_operator, np.inf), axis=0, initial=np.inf), float)

    def p_late(self, parallelism: Ints, bins: slice) -> Floats:
        """Return (T',) the probability that some operator gets more than it can process.

        Normal capacity, a wide one as in models.capacity.lower_tail, against the forecast's quantiles: P = E over load
        of [1 - product over operators of P(capacity >= rate)]; capacities are independent given the load, the
        operators' rates rise together.
        """
        rows, mean, sd = self._select_modelled(parallelism)
        rates = quantiles_at_scores(self.demand.rates_per_s[:, rows, bins], _SCORES)  # (Z, M, T')
        min_sd = np.maximum(sd, 1e-9 * np.maximum(np.abs(mean), 1.0))
        holds = ndtr((mean[:, None] - rates) / sd_towards(mean[:, None], min_sd[:, None], rates))
        return np.asarray(np.clip(_WEIGHTS @ (1.0 - holds.prod(axis=1)), 0.0, 1.0))

    def expect(self, parallelism: Ints, begin: int, end: int) -> Expectation:
        """Return what to expect of a configuration, (O,), during bins ``[begin, end)``."""
        bins = slice(begin, end)
        q50, q90 = self.demand.load_per_s[MEDIAN, bins], self.demand.load_per_s[_Q90, bins]
        capacity = self.capacity_per_s(parallelism, bins)
        with np.errstate(divide="ignore"):  # no capacity at all: infinitely overloaded
            worst = int(np.argmax(q90 / capacity))
        at = slice(begin + worst, begin + worst + 1)
        recovery = self.recovery.recovery_s(q50[worst], capacity[worst], kind="restart")
        return Expectation(
            load_q50_per_s=float(q50.max()),
            load_q90_per_s=float(q90.max()),
            capacity_per_s=float(capacity[worst]),
            capacity_lower_per_s=float(self.capacity_per_s(parallelism, at, z=-self.z)[0]),
            capacity_upper_per_s=float(self.capacity_per_s(parallelism, at, z=self.z)[0]),
            utilisation=_ratio(q50[worst], capacity[worst]),
            p_late=float(self.p_late(parallelism, bins).max()),
            recovery_s=float(recovery),
        )


def _ratio(load: float, capacity: float) -> float:
    if capacity <= 0:
        return float("inf") if load > 0 else 0.0
    return float(load / capacity)
