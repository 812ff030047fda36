"""The gate: whether a challenger replaces the champion, judged by errors of both on the same held-back windows.

A criterion compares the challenger with a reference: with the champion, or, where there is none, with a naive linear
model (the mean rate per instance, times parallelism).  What is compared is always measured now on the same rows; no
figure of an earlier training is kept, so that nothing has to become better for ever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np

from models.arrays import Floats

CHANCE_SD: Final = 2.0
"""A mean difference within so many of its standard deviations may be chance."""
LEAST_ROWS: Final = 10
"""Fewer rows tell nothing of a mean error, whatever it is."""
LARGE_ERROR: Final = 1.0
"""A mean relative error that is larger exceeds what is predicted: of no use, whatever it is compared with."""


class Verdict(StrEnum):
    """What became of a challenger."""

    FIRST = "first"  # there was no champion that knows the jobs which run; it is one now
    PASSED = "passed"
    FAILED = "failed"
    REVIEWED = "reviewed"  # a person has chosen whose models single jobs have; no training made it
    KEPT = "kept"  # nothing could be compared: the champion stays, and plans use it with wider intervals


@dataclass(frozen=True, slots=True)
class Criterion:
    """One comparison; errors are means, smaller is better.

    Attributes:
        name: of the metrics ``gate_<name>`` and ``gate_<name>_reference``.
        meaning: what the error is, for a person.
        challenger, reference: mean errors; NaN where nothing was measured.
        against: what the reference is.
        count: rows of which both errors are known.
        tolerance: by which the challenger may be worse.
        chance: by which two equal models may differ on so few rows.
        decides: whether a worse challenger is refused for it; else it is only shown.
    """

    name: str
    meaning: str
    challenger: float
    reference: float
    against: str
    count: int
    tolerance: float
    chance: float
    decides: bool = True

    @property
    def lack(self) -> str:
        """Why nothing can be said; empty where something can."""
        if not (self.count > 0 and math.isfinite(self.challenger) and math.isfinite(self.reference)):
            return "nothing to compare with"
        return "" if self.count >= LEAST_ROWS else "too few rows to judge"

    @property
    def is_comparable(self) -> bool:
        """Whether both were measured on rows enough to judge by."""
        return not self.lack

    @property
    def is_worse(self) -> bool:
        """Whether the challenger is worse by more than tolerance and chance."""
        return self.is_comparable and self.challenger > self.reference + self.tolerance + self.chance

    @property
    def is_equal(self) -> bool:
        """Whether a person reads the same figure of both."""
        return self.is_comparable and f"{self.challenger:.2%}" == f"{self.reference:.2%}"

    @property
    def result(self) -> str:
        """How the challenger did, in a word or a clause."""
        if not self.is_comparable:
            return self.lack
        if self.is_equal:
            return "no difference"
        if self.is_worse:
            return "worse"
        return "better" if self.challenger < self.reference else "worse, within the tolerance"

    @property
    def reason(self) -> str:
        """One clause for a person."""
        if not self.is_comparable:
            pair = ((self.challenger, ""), (self.reference, f" of the {self.against}"))
            known = " against ".join(f"{error:.2%}{of}" for error, of in pair if math.isfinite(error))
            return (
                f"{self.meaning}: {known}{', ' if known else ''}{self.lack}{f' ({self.count})' if self.count else ''}"
            )
        if self.is_equal:
            return f"{self.meaning} {self.challenger:.2%}, no difference from the {self.against} on {self.count} rows"
        relation = "beyond" if self.is_worse else "within"
        return (
            f"{self.meaning} {self.challenger:.2%} against {self.reference:.2%} of the {self.against} on {self.count} "
            f"rows, {relation} the tolerance of {self.tolerance + self.chance:.2%}"
        )


@dataclass(frozen=True, slots=True)
class Gate:
    """The verdict on a challenger.

    Attributes:
        verdict: see :class:`Verdict`.
        detail: one sentence for a person.
        compared: rows on which a deciding criterion compared it; 0: nothing is proven by the verdict.
        criteria: everything that was compared or could not be.
    """

    verdict: Verdict
    detail: str
    compared: int
    criteria: tuple[Criterion, ...]


def compare(
    name: str,
    meaning: str,
    challenger: Floats,
    reference: Floats,
    *,
    against: str,
    tolerance: float,
    decides: bool = True,
) -> Criterion:
    """Compare errors of the same rows, (n,) each; rows of which one is not finite are left out."""
    both = np.isfinite(challenger) & np.isfinite(reference)
    if not both.any():
        own = challenger[np.isfinite(challenger)]
        alone = float(own.mean()) if len(own) else math.nan
        return Criterion(name, meaning, alone, math.nan, against, 0, tolerance, 0.0, decides)
    difference = (challenger - reference)[both]
    spread = float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    chance = CHANCE_SD * spread / math.sqrt(len(difference))
    means = float(challenger[both].mean()), float(reference[both].mean())
    return Criterion(name, meaning, *means, against, int(both.sum()), tolerance, chance, decides)


def judge(criteria: Sequence[Criterion], *, has_champion: bool, champion_knows: int) -> Gate:
    """Judge a challenger.

    It may replace the champion when no deciding criterion finds it worse.  With nothing to compare the champion stays
    (``kept``), unless it knows none of the jobs that run: then it is of no use, and the challenger is a first model.
    ``champion_knows`` is how many of these it knows.
    """
    decisive = [one for one in criteria if one.decides and one.is_comparable]
    compared, retained = sum(one.count for one in decisive), tuple(criteria)
    if worse := [one for one in decisive if one.is_worse]:
        return Gate(Verdict.FAILED, "; ".join(one.reason for one in worse), compared, retained)
    names = ", ".join(one.name for one in decisive)
    reasons = f"no worse than the {decisive[0].against}: {names}" if decisive else ""
    if not has_champion or not champion_knows:
        why = "the champion knows none of the jobs that run" if has_champion else "no champion yet"
        return Gate(Verdict.FIRST, f"{why}; {reasons or _UNPROVEN}", compared, retained)
    if decisive:
        return Gate(Verdict.PASSED, reasons, compared, retained)
    return Gate(Verdict.KEPT, "too few held-back rows that both models know; the champion stays", 0, retained)


def name_large_errors(errors: Mapping[str, float | None]) -> str:
    """Return which mean relative errors, by what is predicted, are too large to be of use; empty where none is.

    >>> name_large_errors({"recovery": 3.99, "latency": 0.1, "capacity": None})
    'recovery is off by 399% on what was held back'
    """
    large = [(name, error) for name, error in errors.items() if error is not None and error > LARGE_ERROR]
    return ", ".join(f"{name} is off by {error:.0%} on what was held back" for name, error in large)


def warn_of_errors(gate: Gate, errors: Mapping[str, float | None]) -> Gate:
    """Return the gate whose detail names the errors that are too large to be of use, whatever the verdict."""
    named = name_large_errors(errors)
    return replace(gate, detail=f"{gate.detail}; but {named}") if named else gate


_UNPROVEN = "too few rows were held back to compare it on, so its intervals are widened"
