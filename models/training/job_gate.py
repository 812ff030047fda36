"""The gate for single jobs: which of them a challenger serves worse than the models that they have.

A mean over the fleet does not show it: the errors of one job among hundreds vanish in it.  So each job's errors are
compared on its own rows, by the mean of paired differences.  Of many comparisons some are worse by chance, so a
difference counts beyond the quantile of Student's t at RISK divided by the number of comparisons (Bonferroni 1936,
"Teoria statistica delle classi e calcolo delle probabilita"), and fewer rows than LEAST_ROWS prove nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
from scipy.special import stdtrit

from models.arrays import Bools, Floats, Ints
from models.bundle.fleet_bundle import JobKey
from models.training.gate import LEAST_ROWS, Criterion, Gate, Verdict, judge

RISK: Final = 0.05
"""Share of trainings in which some job of a fleet is found worse although none is."""
NAMES_SHOWN: Final = 3
_ROUNDING: Final = 1e-9


class ModelChoice(StrEnum):
    """Whose models a job has in a new version."""

    NEW = "new"  # those of this training
    KEPT = "kept"  # those of an earlier version
    LEFT_OUT = "left out"  # none


@dataclass(frozen=True, slots=True)
class JobErrors:
    """Errors of one kind, on rows of all jobs.

    Attributes:
        name, meaning: as of a criterion.
        job: (n,) place of each row's job.
        challenger: (n,) relative errors; NaN where not known.
        champion: (n,) of the champion; NaN where it does not know the row.
        naive: (n,) of the linear model; NaN where there is none for this kind.
        weight: by which the tolerance is multiplied.
    """

    name: str
    meaning: str
    job: Ints
    challenger: Floats
    champion: Floats
    naive: Floats
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class JobVerdict:
    """What becomes of one job.

    Attributes:
        job: cluster and name.
        choice: whose models it has.
        detail: why, one clause for a person; empty for models of this training.
        is_worse: whether its own errors decided.
        compared: rows on which it was compared.
        source: number of the registered version whose models a person has chosen; None: the champion's.
    """

    job: JobKey
    choice: ModelChoice
    detail: str = ""
    is_worse: bool = False
    compared: int = 0
    source: int | None = None


def judge_jobs(
    jobs: Sequence[JobKey], known: Bools, measured: Sequence[JobErrors], tolerance: float
) -> list[JobVerdict]:
    """Judge each job by its own errors.

    A job that the champion knows is compared with it and keeps its models where they are better; a new one is compared
    with the linear model, and is left out where even that is better.  What cannot be compared is taken. ``known``,
    (J,), says of which jobs the champion has models; the mean error of one may be larger by the tolerance.
    """
    compared = [_compare(one, known, len(jobs), tolerance) for one in measured]
    pairs = sum(int((one.count >= LEAST_ROWS).sum()) for one in compared)
    rows = np.sum([one.count for one in compared], axis=0) if compared else np.zeros(len(jobs), np.int64)
    worse: list[list[Criterion]] = [[] for _ in jobs]
    for one in compared:
        chance = one.find_chance(RISK / max(pairs, 1))
        beyond = (one.count >= LEAST_ROWS) & (one.challenger - one.reference > one.tolerance + chance)
        for at in np.flatnonzero(beyond).tolist():
            worse[at].append(one.name_criterion(at, "champion" if known[at] else "linear model", float(chance[at])))
    chosen = [
        ModelChoice.NEW if not mine else ModelChoice.KEPT if known[at] else ModelChoice.LEFT_OUT
        for at, mine in enumerate(worse)
    ]
    return [
        JobVerdict(job, choice, "; ".join(each.reason for each in mine), bool(mine), int(count))
        for job, choice, mine, count in zip(jobs, chosen, worse, rows, strict=True)
    ]


def judge_with_jobs(
    criteria: Sequence[Criterion],
    judged: Sequence[JobVerdict],
    *,
    has_champion: bool,
    champion_knows: int,
    worse_max: float,
) -> Gate:
    """Judge a challenger whose worse jobs do not take part.

    Criteria are of the fleet, on rows of the jobs that have models of this training. With a larger share than
    ``worse_max`` of worse jobs, among those that could be compared with a champion, the whole challenger is refused.
    """
    of_champion = [one for one in judged if one.choice is not ModelChoice.LEFT_OUT and one.source is None]
    worse, compared = sum(one.is_worse for one in of_champion), sum(bool(one.compared) for one in of_champion)
    retained, excluded = describe_jobs(judged, ModelChoice.KEPT), describe_jobs(judged, ModelChoice.LEFT_OUT)
    if champion_knows and worse > math.floor(worse_max * compared + _ROUNDING):
        why = (
            f"{worse} of {compared} jobs are worse, more than training.gate_worse_jobs_max = {worse_max:g}: {retained}"
        )
        return Gate(Verdict.FAILED, why, sum(one.compared for one in judged), tuple(criteria))
    if judged and all(one.choice is ModelChoice.LEFT_OUT for one in judged):
        why = f"no job has models that may be used: {excluded}"
        return Gate(Verdict.FAILED, why, sum(one.compared for one in judged), tuple(criteria))
    gate = judge(criteria, has_champion=has_champion, champion_knows=champion_knows)
    parts = [gate.detail]
    parts += [f"models of an earlier version are kept by {retained}"] if retained else []
    parts += [f"no models yet for {excluded}"] if excluded else []
    return replace(gate, detail="; ".join(parts))


def describe_jobs(judged: Sequence[JobVerdict], choice: ModelChoice) -> str:
    """Return the names of the jobs with a choice, the first with its reason; empty where there is none."""
    mine = [one for one in judged if one.choice is choice]
    if not mine:
        return ""
    names = ", ".join("/".join(one.job) for one in mine[:NAMES_SHOWN])
    more = f" and {len(mine) - NAMES_SHOWN} others" if len(mine) > NAMES_SHOWN else ""
    return f"{names}{more} ({mine[0].detail})"


@dataclass(frozen=True, slots=True)
class _JobMeans:
    """Means by job, (J,) each."""

    name: str
    meaning: str
    count: Ints
    challenger: Floats
    reference: Floats
    spread: Floats
    tolerance: float

    def find_chance(self, risk: float) -> Floats:
        """Return (J,) by how much two equal models may differ."""
        freedom = np.maximum(self.count - 1, 1)
        return np.asarray(stdtrit(freedom, 1.0 - risk) * self.spread / np.sqrt(np.maximum(self.count, 1)))

    def name_criterion(self, at: int, against: str, chance: float) -> Criterion:
        means = float(self.challenger[at]), float(self.reference[at])
        return Criterion(self.name, self.meaning, *means, against, int(self.count[at]), self.tolerance, chance)


def _compare(one: JobErrors, known: Bools, jobs: int, tolerance: float) -> _JobMeans:
    reference = np.where(known[one.job], one.champion, one.naive) if len(one.job) else one.champion
    both = np.isfinite(one.challenger) & np.isfinite(reference)
    job, ours, theirs = one.job[both], one.challenger[both], reference[both]
    count = np.bincount(job, minlength=jobs)
    many = np.maximum(count, 1)
    mean, other = (np.bincount(job, values, minlength=jobs) / many for values in (ours, theirs))
    off = (ours - theirs - (mean - other)[job]) ** 2
    spread = np.sqrt(np.bincount(job, off, minlength=jobs) / np.maximum(count - 1, 1))
    return _JobMeans(one.name, one.meaning, count, mean, other, spread, tolerance * one.weight)


def apply_orders(judged: Sequence[JobVerdict], orders: Mapping[JobKey, tuple[int | None, str]]) -> list[JobVerdict]:
    """Return the judgements with what persons have ordered in the place of what errors say.

    An order has the number of the version whose models a job shall have (None: none of them may be used), and why.
    """
    result = list[JobVerdict]()
    for one in judged:
        if one.job not in orders:
            result.append(one)
            continue
        number, why = orders[one.job]
        choice = ModelChoice.LEFT_OUT if number is None else ModelChoice.KEPT
        result.append(JobVerdict(one.job, choice, why, False, one.compared, number))
    return result
