"""What is kept of a job to tell what its load does next; small, and as text the same after a restart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.arrays import Floats
from models.programme import error_shapes, hypotheses, packed_arrays
from models.programme.load_paths import DAY, KEPT, SOURCES

SHARES: Final = (0.02, 0.3, 1.5)
"""Scales: y = log(load + c) with c these shares of the mean load.

Small where the load varies in proportion, large where it is a count near zero.
"""
LEADS: Final = (1, 3, 6, 12, 24, 48, 96)
RECENT: Final = 12
"""Steps of which the last are origins of errors; from leads beyond it on only full hours are."""
_HOURS: Final = 8
_ORIGINS: Final = RECENT + _HOURS
_C, _M, _H = len(SHARES), hypotheses.COUNT, len(LEADS)
PRIOR_STEPS: Final = 24.0
_LAYOUT: Final[packed_arrays.Layout] = {
    "counts": ((4,), "f8"),
    "offsets": ((_C,), "f8"),
    "loads": ((KEPT,), "i2"),
    "profile": ((DAY,), "i2"),
    "level": ((_C, _M), "f4"),
    "origin_at": ((_ORIGINS,), "f8"),
    "origin_level": ((_ORIGINS, _C, _M), "i2"),
    "origin_path": ((_ORIGINS, len(SOURCES)), "i2"),
    "origin_champion": ((_ORIGINS, _H), "i2"),
    "squares": ((_C, _M, _H), "f4"),
    "weight": ((_H,), "f4"),
    "restless": ((_C,), "f4"),
    "calm": ((_C,), "f4"),
    "shapes": ((_C, error_shapes.SHAPES), "f4"),
    "stretch": ((_C,), "f4"),
}


@dataclass(slots=True)
class LawState:
    """State of the law of one job's load; C scales, M hypotheses, H leads, R origins.

    That of N jobs together has a first axis (N,) more: jobs that were seen at the same steps and have no forecast or
    the same one, so that ``newest``, ``seen`` and where there is an origin are the same of all.

    Attributes:
        counts: (4,) number of the newest step, steps seen, mean load per s, 1 once a forecast could be used.
        offsets: (C,) c of each scale, records/s.
        loads: (``KEPT``,) log loads, the newest last.
        profile: (``DAY``,) log of the usual load by time of day, NaN where it was not seen.
        level: (C, M) m after the newest step.
        origin_at: (R,) number of the step that an origin is, -1 without one.
        origin_level: (R, C, M) level at the origins.
        origin_path: (R, S) log of the paths at the origins.
        origin_champion: (R, H) log of the forecast at each lead after the origins.
        squares: (C, M, H) mean square error.
        weight: (H,) steps that the errors of a lead are worth.
        restless: (C,) recent square errors over the usual ones.
        calm: (C,) mean of the standardised square errors that were no change of the level.
        shapes: (C, SHAPES) log densities of the standardised errors, summed with forgetting.
        stretch: (C,) mean of log(load + c): the scale's own part of a likelihood.
    """

    counts: Floats
    offsets: Floats
    loads: Floats
    profile: Floats
    level: Floats
    origin_at: Floats
    origin_level: Floats
    origin_path: Floats
    origin_champion: Floats
    squares: Floats
    weight: Floats
    restless: Floats
    calm: Floats
    shapes: Floats
    stretch: Floats

    @classmethod
    def first(cls) -> LawState:
        """Return the state before the first load."""
        arrays = {name: np.zeros(shape) for name, (shape, _) in _LAYOUT.items()}
        arrays["profile"][:] = np.nan
        arrays["origin_at"][:] = -1.0
        arrays["squares"][:] = 0.03**2 + 0.02**2 * np.array(LEADS)
        arrays["weight"][:] = PRIOR_STEPS
        arrays["restless"][:] = 1.0
        arrays["calm"][:] = 1.0
        arrays["shapes"][:] = error_shapes.PRIOR
        return cls(**arrays)

    @classmethod
    def first_of_many(cls, jobs: int) -> LawState:
        """Return the state of N jobs before their first load."""
        first = cls.first()
        states = cls(*(np.repeat(getattr(first, name)[None], jobs, axis=0) for name in _LAYOUT))
        # In memory by lead, in which they are read and written: an eighth less time for 64 jobs.
        states.squares = np.moveaxis(np.moveaxis(states.squares, -1, 1).copy(), 1, -1)
        return states

    def as_one_of_many(self) -> LawState:
        """Return the same state as that of N = 1 jobs; what is changed in one is changed in both."""
        return LawState(*(getattr(self, name)[None] for name in _LAYOUT))

    def take(self, place: int) -> LawState:
        """Return the state of one of N jobs."""
        return LawState(*(getattr(self, name)[place] for name in _LAYOUT))

    @classmethod
    def read(cls, text: str) -> LawState:
        """Return the state that :meth:`write` wrote; the first one for an empty text.

        Raises:
            ValueError: the text is none.
        """
        return cls(*packed_arrays.unpack(text, _LAYOUT)) if text else cls.first()

    def write(self) -> str:
        """Return the state as text."""
        return packed_arrays.pack([getattr(self, name) for name in _LAYOUT], _LAYOUT)

    @property
    def newest(self) -> int:
        """Number of the newest step; steps are numbered from the epoch on."""
        return int(self.counts.flat[0])

    @property
    def seen(self) -> int:
        """Steps that were seen."""
        return int(self.counts.flat[1])


def slot_of(at: int, lead: int) -> int | None:
    """Return where the origin of a lead to a step lies; None where that lead is not scored at this step."""
    if lead <= RECENT:
        return (at - lead) % RECENT
    return None if at % RECENT else RECENT + (at - lead) // RECENT % _HOURS


def list_slots(at: int) -> list[int]:
    """Return where a step is kept as an origin."""
    return [at % RECENT] if at % RECENT else [0, RECENT + at // RECENT % _HOURS]
