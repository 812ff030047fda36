"""Which windows tell the capacity of an operator, and how far a lightly used operator can be trusted.

Capacity is rate / busy share (Eq. 5 of DS2), as if each record cost the same at any load.  It does not: a join over
more state costs more per record at high load than at low load, and where every timer or every batch has a fixed cost it
costs less.  What counts is the capacity near saturation, so it is learnt from the busiest windows at a parallelism:

    busy share >= min(BUSY_ENOUGH, OF_BUSIEST * busiest)

``busiest`` is the highest busy share there within HELD_S before the last window.  A window in which the operator did
less than usual is no measure of it: a stall is busy too, and says nothing about capacity.

What the busiest windows leave in doubt is a standard deviation of ln C that grows as the busy share falls:

    s(b) = min(DOUBT * (1 / b - 1), MAX_DOUBT) below TRUSTED, 0 from there on

the form of the error that a fixed cost per unit of time makes.  ``benchmarks/capacity/load.py`` compares the rules.

Deviation: DS2 and ContTune take the windows as they come.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from models.arrays import Floats, Ints

BUSY_ENOUGH: Final = 0.7
OF_BUSIEST: Final = 0.9
HELD_S: Final = 7 * 86_400  # loads repeat by the week; a faster release must not stay unseen for longer
TRUSTED: Final = 0.4
DOUBT: Final = 0.1
MAX_DOUBT: Final = 0.5


def least_busy_share(busiest: Floats) -> Floats:
    """Return the busy share from which on windows tell the capacity, (...) as the highest one, 0..1."""
    return np.asarray(np.minimum(BUSY_ENOUGH, OF_BUSIEST * busiest), float)


def least_share_beside(busiest: float) -> float:
    """Return :func:`least_busy_share` of one number: a plan asks hundreds of times a job, for which arrays are slow."""
    return min(BUSY_ENOUGH, OF_BUSIEST * busiest)


def find_busiest(point: Ints, time_s: Floats, busy: Floats, capacity_per_s: Floats) -> Floats:
    """Return (points,) the highest busy share at each (operator, parallelism).

    Args:
        point: (n,) number of the (operator, parallelism) of each window, 0..points-1.
        time_s: (n,) when; larger is later.
        busy: (n,) busy share, above 0.
        capacity_per_s: (n,) rate / busy share.
    """
    points = int(point.max(initial=-1)) + 1
    last = np.full(points, -np.inf)
    np.maximum.at(last, point, time_s)
    late = time_s >= last[point] - HELD_S
    rate = busy * capacity_per_s
    totals = np.bincount(point[late], rate[late], minlength=points)
    usual = totals / np.maximum(np.bincount(point[late], minlength=points), 1)
    counts = late & (rate >= OF_BUSIEST * usual[point])
    busiest = np.zeros(points)
    np.maximum.at(busiest, point[counts], busy[counts])
    return busiest


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
