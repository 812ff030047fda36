"""Events that people know of: what they make of a forecast, and what of a history they leave to learn from.

With an event of factor f a source's load is f times what it would be without.  Both are uncertain and independent of
each other, so the deviations of their logarithms from the medians add up in squares:

    log q'_p = log q_50 + log f_50 +- sqrt( (log q_p - log q_50)^2 + (log f_p - log f_50)^2 )

An event of a given rate leaves nothing of the forecast's own deviation.  The windows of an event say nothing about
usual days: a history is learnt from without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from models.arrays import Bools, Floats
from models.scheduling.demand import LEVELS, MEDIAN, SCORES

if TYPE_CHECKING:
    from include.settings.events import Event  # workers need none of the settings, whose checks take half a second

_LOW, _HIGH = LEVELS.index(0.1), LEVELS.index(0.9)
_WIDER: Final = float(SCORES[LEVELS.index(0.95)] / SCORES[_HIGH])
_LEAST_PER_S: Final = 1e-9


@dataclass(frozen=True, slots=True)
class KnownEvent:
    """An event of one source.

    Attributes:
        name: as its people call it.
        starts_s, ends_s: epoch seconds.
        low, value, high: 10%, 50% and 90% of the factor, or of the rate, records/s.
        is_rate: which of both they are.
    """

    name: str
    starts_s: float
    ends_s: float
    low: float
    value: float
    high: float
    is_rate: bool = False

    @property
    def levels(self) -> Floats:
        """(L,) factor or rate at ``LEVELS``; beyond 90% the upper side continues, normal in the logarithm."""
        beyond = self.value * (self.high / self.value) ** _WIDER
        return np.array([self.low, self.value, self.high, beyond])


@dataclass(frozen=True, slots=True)
class RaisedRates:
    """Quantiles of a source with its events.

    Attributes:
        quantiles: (L, T) records/s.
        factor: (T,) median with the event over the one without; 1 where there is none.
        spread: (T,) standard deviation of the logarithm of what the event is uncertain of; 0 where there is none.
        names: (T,) of the event; empty where there is none.
    """

    quantiles: Floats
    factor: Floats
    spread: Floats
    names: tuple[str, ...]


def list_events(events: Mapping[str, Event], job: str, source: str) -> tuple[KnownEvent, ...]:
    """Return the events of a source of a job, ``cluster/job``, by time."""
    result = []
    for name, one in events.items():
        if one.names_source(job, source):
            low, value, high = one.range
            times = one.starts_at.timestamp(), one.ends_at.timestamp()
            result.append(KnownEvent(name, *times, low, value, high, is_rate=one.rate_per_s is not None))
    return tuple(sorted(result, key=lambda one: one.starts_s))


def raise_rates(quantiles: Floats, events: Sequence[KnownEvent], start_s: float, bin_s: float) -> RaisedRates:
    """Return a forecast, (L, T) records/s at ``LEVELS`` from ``start_s`` on, with its events, no two at one time."""
    bins = quantiles.shape[1]
    raised, factor, spread = quantiles.copy(), np.ones(bins), np.zeros(bins)
    names = [""] * bins
    for event in events:
        share = share_of_bins(event, start_s, bin_s, bins)
        for at in np.flatnonzero(share > 0).tolist():
            raised[:, at], factor[at], spread[at] = _raise_bin(quantiles[:, at], event, float(share[at]))
            names[at] = event.name
    return RaisedRates(raised, factor, spread, tuple(names))


def _raise_bin(rates: Floats, event: KnownEvent, share: float) -> tuple[Floats, float, float]:
    """Return (L,) quantiles, factor and spread of a bin of which an event covers a share."""
    base = np.maximum(rates, _LEAST_PER_S)
    factors = event.levels / (base[MEDIAN] if event.is_rate else 1.0)
    factors = 1.0 + (factors - 1.0) * share
    own = np.log(base / base[MEDIAN]) * (1.0 - share if event.is_rate else 1.0)
    of_event = np.log(factors / factors[MEDIAN])
    deviation = np.hypot(own, of_event) * np.sign(np.array(LEVELS) - LEVELS[MEDIAN])
    raised = base[MEDIAN] * factors[MEDIAN] * np.exp(deviation)
    spread = float((of_event[_HIGH] - of_event[_LOW]) / (SCORES[_HIGH] - SCORES[_LOW]))
    return np.where(base > _LEAST_PER_S, raised, raised if event.is_rate else 0.0), float(factors[MEDIAN]), spread


def share_of_bins(event: KnownEvent, start_s: float, bin_s: float, bins: int) -> Floats:
    """Return (T,) the share of each bin that an event covers."""
    begins_s = start_s + bin_s * np.arange(bins)
    covered_s = np.minimum(event.ends_s, begins_s + bin_s) - np.maximum(event.starts_s, begins_s)
    return np.asarray(np.clip(covered_s / bin_s, 0.0, 1.0))


def find_event_bins(events: Sequence[KnownEvent], start_s: float, bin_s: float, bins: int) -> Bools:
    """Return (T,) the bins that some event touches, of which a history has nothing to learn from."""
    touched = np.zeros(bins, bool)
    for event in events:
        touched |= share_of_bins(event, start_s, bin_s, bins) > 0
    return touched
