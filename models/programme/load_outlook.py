"""What the law of a job's load expects of the next hours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.arrays import Floats
from models.programme import error_shapes
from models.programme.hypotheses import GAIN, KEEP, PULL, SOURCE, expect_path
from models.programme.law_state import LEADS, LawState
from models.programme.load_law import Champion, choose_hypothesis
from models.programme.load_paths import AHEAD, CHAMPION, LEAST_PER_S, SOURCES, list_paths

_RESTLESS_SHARE: Final = 0.5
_RESTLESS_REACH: Final = 24.0  # steps after which half of the unrest is over
_MISSED_LEAD: Final = 12


@dataclass(frozen=True, slots=True)
class LoadReference:
    """What the load is expected to follow.

    Attributes:
        source: which path; empty where the level is held.
        forecast_weight: share of the forecast in what is expected.
    """

    source: str
    forecast_weight: float

    @classmethod
    def of(cls, which: int, path: Floats) -> LoadReference:
        """Return what a hypothesis follows; a path that says nothing yet holds the level."""
        if not (PULL[which] > 0 and float(np.ptp(path)) > 0):
            return cls("", 0.0)
        is_forecast = SOURCE[which] == CHAMPION
        return cls(SOURCES[SOURCE[which]], float(PULL[which]) if is_forecast else 0.0)


@dataclass(frozen=True, slots=True)
class LoadOutlook:
    """The load of the next ``AHEAD`` steps, y = log(load + offset).

    Attributes:
        mean: (H,) E[y].
        sd: (H,) of the level of y at each step.
        noise: sd of a single step around its level.
        pull, keep: g and rho of the hypothesis that was chosen.
        offset: c, records/s.
        shape: of the errors.
        followed: by the hours that come first.
        forecast_missed: usual relative error of the forecast an hour ahead, at the measured height; NaN without one.
        later: what is followed after them, where it is something else.
        event: what the events that people know of make of it, as a sentence says it; empty without any.
    """

    mean: Floats
    sd: Floats
    noise: float
    pull: float
    keep: float
    offset: float
    shape: error_shapes.Weights
    followed: LoadReference
    forecast_missed: float
    later: LoadReference | None = None
    event: str = ""

    def quantile_per_s(self, z: float, steps: int) -> Floats:
        """Return (steps,) the load of the next steps at a standard score, transients included, records/s."""
        spread = np.sqrt(self.sd[:steps] ** 2 + self.noise**2)
        return np.asarray(np.maximum(np.exp(self.mean[:steps] + z * spread) - self.offset, 0.0))


def look_ahead(state: LawState, champion: Champion) -> LoadOutlook:
    """Return what is expected after the newest step."""
    scale, best = choose_hypothesis(state)
    forecast = champion(state.newest)
    logs = None if forecast is None else np.log(np.maximum(forecast, LEAST_PER_S))
    paths = list_paths(state.loads, state.profile, state.newest, state.seen, logs)
    offset, squares = float(state.offsets[scale]), state.squares[scale, best]
    path = np.log(np.exp(paths[SOURCE[best]]) + offset)
    # What was a change of the level is no noise around it.
    noise = (1.0 - GAIN[best]) * squares[0] * min(float(state.calm[scale]), 1.0)
    level = np.maximum.accumulate(np.maximum(squares - noise, 0.05 * squares))
    leads = np.arange(1, AHEAD + 1)
    variance = np.interp(leads, LEADS, level)
    unrest = float(np.clip(1.0 + _RESTLESS_SHARE * (state.restless[scale] - 1.0), 0.5, 9.0))
    fading = 1.0 + (unrest - 1.0) * 0.5 ** (leads / _RESTLESS_REACH)
    sd = np.maximum.accumulate(np.sqrt(variance * fading))
    pull, keep = float(PULL[best]), float(KEEP[best])
    return LoadOutlook(
        mean=expect_path(best, float(state.level[scale, best]), path),
        sd=sd,
        noise=float(np.sqrt(noise)),
        pull=pull,
        keep=keep,
        offset=offset,
        shape=error_shapes.weigh_shapes(state.shapes[scale]),
        followed=LoadReference.of(best, path),
        forecast_missed=_find_missed(state, scale),
    )


def _find_missed(state: LawState, scale: int) -> float:
    if not state.counts[3]:
        return float("nan")
    as_planned = np.flatnonzero((SOURCE == CHAMPION) & (PULL == 1.0) & (KEEP == 1.0))
    squares = state.squares[scale, as_planned, LEADS.index(_MISSED_LEAD)]
    return float(np.expm1(np.sqrt(squares.min())))
