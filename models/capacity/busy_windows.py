"""Which windows tell the capacity of an operator, and how far a lightly used operator can be trusted.

Capacity is rate / busy share (Eq. 5 of DS2), as if each record cost the same at any load.  It does not: a join over
more state costs more per record at high load than at low load, and where every timer or every batch has a fixed cost it
costs less.  What counts is the capacity near saturation, so it is learnt from the busiest windows at a parallelism:

    busy share >= min(BUSY_ENOUGH, OF_BUSIEST * busiest)

``busiest`` is the highest busy share there within HELD_S before the last window.  A window in which the operator did
less than usual is no measure of it: a stall is busy too, and says nothing about capacity.  Nor is one in which it did
less than SLOW of what a busy second usually does, though no more records came than usual: something else had its
processor.  Where all operators of a job are slow so, its window is none.

Below TRUSTED the busiest windows are those in which a neighbour took most: there the middle half of all counts.

What the busiest windows leave in doubt is a standard deviation of ln C that grows as the busy share falls:

    s(b) = min(DOUBT * (1 / b - 1), MAX_DOUBT) below TRUSTED, 0 from there on

the form of the error that a fixed cost per unit of time makes.  ``benchmarks/capacity/load.py`` compares the rules.

Deviation: DS2 and ContTune take the windows as they come.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.capacity.robust_means import find_medians

BUSY_ENOUGH: Final = 0.7
OF_BUSIEST: Final = 0.9
HELD_S: Final = 7 * 86_400  # loads repeat by the week; a faster release must not stay unseen for longer
TRUSTED: Final = 0.4
DOUBT: Final = 0.1
MAX_DOUBT: Final = 0.5
SLOW: Final = 0.5
_USUAL_S: Final = 86_400  # a job that is slow for half of it has become slow


def least_share_beside(busiest: float) -> float:
    """Return the busy share, 0..1, from which on windows tell the capacity beside the busiest one."""
    return min(BUSY_ENOUGH, OF_BUSIEST * busiest)


def find_slow(point: Ints, time_s: Floats, busy: Floats, capacity_per_s: Floats) -> Bools:
    """Return (n,) in which windows a busy second did far less than usual, and no more records explain it.

    Args:
        point: (n,) number of the (operator, parallelism) of each window, 0..points-1.
        time_s: (n,) when; larger is later.
        busy: (n,) busy share, above 0.
        capacity_per_s: (n,) rate / busy share.
    """
    recent, rate = _is_late(point, time_s, _USUAL_S), busy * capacity_per_s
    usual, usual_rate = (find_medians(point[recent], values[recent])[point] for values in (capacity_per_s, rate))
    return np.asarray((capacity_per_s < SLOW * usual) & (rate <= usual_rate / OF_BUSIEST))


def find_telling(
    point: Ints, time_s: Floats, busy: Floats, capacity_per_s: Floats, has_limit: Bools | None = None
) -> tuple[Bools, Floats]:
    """Return (n,) which windows tell a capacity, and (points,) the highest busy share among those of each point.

    Arguments are those of :func:`find_slow`, and (points,) whether the operator was seen at its limit there, so that a
    lighter load tells less.
    """
    busiest = find_busiest(point, time_s, busy, capacity_per_s)
    limited = np.zeros(len(busiest), bool) if has_limit is None else has_limit
    least = np.where(limited, OF_BUSIEST * busiest, np.minimum(BUSY_ENOUGH, OF_BUSIEST * busiest))
    is_quiet = (busiest < TRUSTED) & ~limited
    tells = np.where(is_quiet[point], _find_middle(point, time_s, capacity_per_s), busy >= least[point])
    most = np.zeros(len(busiest))
    np.maximum.at(most, point[tells], busy[tells])
    return tells, np.where(is_quiet, most, busiest)


def find_busiest(point: Ints, time_s: Floats, busy: Floats, capacity_per_s: Floats) -> Floats:
    """Return (points,) the highest busy share at each (operator, parallelism); arguments of :func:`find_slow`."""
    points = int(point.max(initial=-1)) + 1
    late, rate = _is_late(point, time_s, HELD_S), busy * capacity_per_s
    totals = np.bincount(point[late], rate[late], minlength=points)
    usual = totals / np.maximum(np.bincount(point[late], minlength=points), 1)
    counts = late & (rate >= OF_BUSIEST * usual[point]) & ~find_slow(point, time_s, busy, capacity_per_s)
    busiest = np.zeros(points)
    np.maximum.at(busiest, point[counts], busy[counts])
    return busiest


def _find_middle(point: Ints, time_s: Floats, capacity_per_s: Floats) -> Bools:
    """Return (n,) which windows are of the middle half by capacity, of those within HELD_S of each point's last."""
    late = np.flatnonzero(_is_late(point, time_s, HELD_S))
    order = late[np.lexsort((capacity_per_s[late], point[late]))]
    sizes = np.bincount(point[late])
    place = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[point[order]]
    share = (place + 0.5) / sizes[point[order]]
    result = np.zeros(len(point), bool)
    result[order] = (share >= 0.25) & (share <= 0.75)
    return result


def _is_late(point: Ints, time_s: Floats, within_s: float) -> Bools:
    """Return (n,) which windows are within a time before the last one of their point."""
    last = np.full(int(point.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(last, point, time_s)
    return np.asarray(time_s >= last[point] - within_s)


def light_load_sd(busiest: Floats) -> Floats:
    """Return s(b), (...): by how much ln C may be off that was seen at busy shares of at most b, (...), above 0."""
    with np.errstate(divide="ignore"):
        doubt = np.minimum(DOUBT * (1.0 / busiest - 1.0), MAX_DOUBT)
    return np.asarray(np.where(busiest >= TRUSTED, 0.0, doubt), float)


def split_doubt(owner: Ints, busiest: Floats) -> tuple[Floats, Floats]:
    """Return what all points of an operator are in doubt by, and what each is beyond that.

    Fixed and growing costs are the operator's, so that they put all of its lightly used points off to one side: more of
    them are no more certain.  Only a point that was used less than another one of the operator is less certain itself.

    Args:
        owner: (n,) operator 0..B-1 of each (operator, parallelism); every operator has one.
        busiest: (n,) highest busy share there.

    Returns:
        (B,) and (n,) standard deviations of ln C.
    """
    most = np.zeros(int(owner.max(initial=-1)) + 1)
    np.maximum.at(most, owner, busiest)
    shared, each = light_load_sd(most), light_load_sd(busiest)
    return shared, np.sqrt(np.maximum(each**2 - shared[owner] ** 2, 0.0))
