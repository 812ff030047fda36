"""Extended GP-UCB, Eq. 18 of Dragster: the number of tasks whose capacity tracks a target, or is worth exploring."""

from __future__ import annotations

import math

from lab.policies.dragster.dragster_options import Bonus
from lab.policies.dragster.gaussian import Posterior
from models.arrays import Floats


def weight(slot: int, candidates: int, delta: float = 2.0) -> float:
    """Return beta_t = 2 ln(|X| t^2 pi^2 delta / 6) of Theorem 1.

    Args:
        slot: t, from 1.
        candidates: |X|, configurations of one operator (the processes are independent).
        delta: the bounds hold with probability 1 - 1 / delta, above 1.
    """
    if slot < 1 or candidates < 1 or not delta > 1:
        raise ValueError("slot and candidates must be at least 1, delta above 1")
    return 2.0 * math.log(candidates * slot**2 * math.pi**2 * delta / 6.0)


def bonus(known: Posterior, beta: float, kind: Bonus = Bonus.VARIANCE) -> Floats:
    """Return (n,) what exploring each number of tasks is worth."""
    return beta * known.deviation**2 if kind is Bonus.VARIANCE else math.sqrt(beta) * known.deviation


def track(known: Posterior, target: float, beta: float, kind: Bonus = Bonus.VARIANCE) -> int:
    """Return the number of tasks that maximises -|mu - y| + bonus, Eq. 18; the smallest of equal ones."""
    score = bonus(known, beta, kind) - abs(known.mean - target)
    return int(known.tasks[int(score.argmax())])


def upper(known: Posterior, beta: float, kind: Bonus = Bonus.VARIANCE) -> Floats:
    """Return (n,) mu + bonus: the capacity that each number of tasks is given the benefit of, normalised."""
    return known.mean + bonus(known, beta, kind)
