"""What persons say of registered models, and what a training has to do for it: a rule of tags and aliases alone.

A rejection or a pin is a tag of a registered version, of the whole (``all``) or of jobs (``cluster/job``, several with
commas between them, or a JSON list where a name holds a comma).  A pin of the whole is the alias ``pinned`` as well.
They count until somebody takes them away, whoever set them: the commands of this project or MLflow's own pages.

- A pinned version stays champion.
- A rejected version never becomes champion.  While it is newer than the champion, no training replaces the champion by
  itself either: it would bring back, of nearly the same data, what was rejected.
- So it is when somebody went back, by the alias ``champion``, to a version before one that was champion already.
- A job that was pinned has the models of that version in every later one.  A job that was rejected has those of the
  newest older version that was champion and in which it was not rejected; without one it has none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from models.bundle.fleet_bundle import JobKey

VERSION_TAG: Final = "tidewise.model_version"
REJECTED_TAG: Final = "tidewise.rejected"
PINNED_TAG: Final = "tidewise.pinned"
PROMOTED_TAG: Final = "tidewise.promoted"
WHOLE: Final = "all"
_PINNED_TO: Final = "pinned to version "


def name_missing(name: str, known: Iterable[int]) -> str:
    """Return the sentence that says which versions there are in the place of one that is not."""
    return f"there is no version {name}; there are: {', '.join(map(str, known)) or 'none'}"


@dataclass(frozen=True, slots=True)
class ReviewedVersion:
    """A registered version.

    Attributes:
        number: of the registry.
        tags: of the version.
    """

    number: int
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        """Whether a training, or a review, of this project registered it."""
        return bool(self.model_version)

    @property
    def model_version(self) -> str:
        """The models' own version; empty of a version that is not of this project."""
        return self.tags.get(VERSION_TAG, "")

    @property
    def was_champion(self) -> bool:
        """Whether it was champion once."""
        return PROMOTED_TAG in self.tags


@dataclass(frozen=True, slots=True)
class ReviewOrders:
    """What a training has to keep to.

    Attributes:
        hold: why no version becomes champion by itself, one clause; None when it may.
        rejected: numbers that never become champion.
        pinned: number that stays champion; None without one.
        orders: job -> number whose models it shall have (None: none of them may be used), and why.
        problems: what persons have set that cannot be followed, a sentence each.
    """

    hold: str | None = None
    rejected: frozenset[int] = frozenset()
    pinned: int | None = None
    orders: Mapping[JobKey, tuple[int | None, str]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def read_names(value: str) -> tuple[bool, list[JobKey], list[str]]:
    """Return whether a tag's value names the whole, the jobs that it names, and what of it is neither.

    >>> read_names("eu/orders, eu/rides")
    (False, [('eu', 'orders'), ('eu', 'rides')], [])
    >>> read_names("all")
    (True, [], [])
    """
    try:
        listed = json.loads(value) if value.lstrip().startswith("[") else value.split(",")
    except ValueError:
        return False, [], [value]
    if not all(isinstance(one, str) for one in listed):
        return False, [], [value]
    is_whole, jobs, others = False, list[JobKey](), list[str]()
    for text in filter(None, (one.strip() for one in listed)):
        cluster, slash, job = text.partition("/")
        if text == WHOLE:
            is_whole = True
        elif slash and cluster and job:
            jobs.append((cluster, job))
        else:
            others.append(text)
    return is_whole, jobs, others


def write_names(is_whole: bool, jobs: Iterable[JobKey]) -> str:
    """Return the value of a tag; empty where it names nothing.

    >>> write_names(False, [("eu", "orders")])
    'eu/orders'
    """
    names = [WHOLE] * is_whole + ["/".join(job) for job in sorted(set(jobs))]
    text = ", ".join(names)
    is_misread = text.startswith("[") or any("," in name for name in names)
    return json.dumps(names, ensure_ascii=False) if is_misread else text


def read_review(
    versions: Sequence[ReviewedVersion],
    champion: int | None,
    pinned: int | None = None,
    is_usable: Callable[[int], bool] = lambda _: True,
) -> ReviewOrders:
    """Return what a training has to keep to, by every registered version, the champion of the plans and a pinned one.

    To go on without versions that cannot be used, whose models cannot be read, is no person's act.
    """
    ordered = sorted(versions, key=lambda one: one.number)
    ours = {one.number: one for one in ordered if one.is_ours}
    problems = [
        f"version {one.number} is not one of this project's trainings (it has no tag {VERSION_TAG}): its tag {tag} is "
        "not followed"
        for one in ordered
        if not one.is_ours
        for tag in (REJECTED_TAG, PINNED_TAG)
        if one.tags.get(tag)
    ]
    rejected, whole_pins = set[int](), list[int]()
    rejected_jobs, pinned_jobs = dict[JobKey, set[int]](), dict[JobKey, int]()
    for number, one in ours.items():
        for tag in (REJECTED_TAG, PINNED_TAG):
            is_whole, jobs, others = read_names(one.tags.get(tag, ""))
            problems += [
                f'tag {tag} of version {number}: {text!r} is neither "{WHOLE}" nor "cluster/job": not followed'
                for text in others
            ]
            if tag == PINNED_TAG:
                whole_pins += [number] * is_whole
                pinned_jobs |= dict.fromkeys(jobs, number)
                continue
            rejected |= {number} if is_whole else set()
            for job in jobs:
                rejected_jobs.setdefault(job, set()).add(number)
    if pinned is not None and pinned not in ours:
        problems.append(
            f"alias pinned names version {pinned}, which is not one of this project's trainings: not followed"
        )
        pinned = None
    pin = pinned if pinned is not None else max(whole_pins, default=None)
    orders = {job: _find_source(rejects, ours, rejected, champion) for job, rejects in rejected_jobs.items()}
    orders |= {job: (number, f"{_PINNED_TO}{number}") for job, number in pinned_jobs.items()}
    hold = _find_hold(ours, rejected, champion, pin, is_usable)
    return ReviewOrders(hold, frozenset(rejected), pin, orders, tuple(problems))


def _find_source(
    rejects: set[int], ours: Mapping[int, ReviewedVersion], rejected: set[int], champion: int | None
) -> tuple[int | None, str]:
    newest, oldest = max(rejects), min(rejects)
    usable = [
        number
        for number, one in ours.items()
        if number < oldest and number not in rejected and (one.was_champion or number == champion)
    ]
    return max(usable, default=None), f"rejected in version {newest}"


def _find_hold(
    ours: Mapping[int, ReviewedVersion],
    rejected: set[int],
    champion: int | None,
    pin: int | None,
    is_usable: Callable[[int], bool],
) -> str | None:
    if pin is not None:
        return f"version {pin} is pinned"
    newer = [number for number in ours if champion is not None and number > champion]
    if refused := [number for number in newer if number in rejected]:
        return f"version {max(refused)}, newer than the champion, is rejected"
    if undone := [number for number in newer if ours[number].was_champion and is_usable(number)]:
        return f"somebody went back from version {max(undone)} to version {champion}"
    return None


def drop_impossible(review: ReviewOrders, jobs_of: Mapping[int, Collection[JobKey]]) -> ReviewOrders:
    """Return the review without pins of jobs to versions that have no models of them."""
    orders, problems = dict[JobKey, tuple[int | None, str]](), list(review.problems)
    for job, (number, why) in review.orders.items():
        if number is None or job in jobs_of[number]:
            orders[job] = number, why
        elif why.startswith(_PINNED_TO):
            problems.append(f"{'/'.join(job)} is {why}, which has no models of it: not followed")
        else:
            orders[job] = None, why
    return replace(review, orders=orders, problems=tuple(problems))


def rank_usable(versions: Sequence[ReviewedVersion], champion: int | None, pinned: int | None = None) -> list[int]:
    """Return the numbers of the versions that plans may use, the wanted one first; empty where nobody named one.

    The others stand in where the first cannot be used: what an alias names may be no model of this project.
    ``champion`` is what the alias names, whatever that is.
    """
    review, ours = read_review(versions, champion, pinned), {one.number: one for one in versions if one.is_ours}
    if champion is None and review.pinned is None:
        return []
    aliased = [champion] if champion in ours else []
    older = sorted(
        (
            number
            for number, one in ours.items()
            if one.was_champion and (not aliased or champion is None or number < champion)
        ),
        reverse=True,
    )
    wanted = [number for number in (*aliased, *older) if number not in review.rejected]
    first = [] if review.pinned is None else [review.pinned]
    return list(dict.fromkeys([*first, *wanted, *aliased]))


def decide_promotion(
    verdict: str, number: int, review: ReviewOrders, champion: int | None, *, is_unmoved: bool, promotion: str
) -> tuple[bool, str]:
    """Return whether a version becomes champion by itself, and why it does not, one clause.

    The champion is one that can be used; ``is_unmoved`` says whether it is the one that the version was compared with.
    """
    if promotion != "gate":
        return False, 'training.promotion = "manual"'
    if verdict not in {"first", "passed"}:
        return False, f"the gate's verdict is {verdict}"
    if number in review.rejected:
        return False, f"version {number} is rejected"
    if review.hold is not None:
        return False, f"{review.hold}: it stays until somebody lifts that or approves a later version"
    if not is_unmoved or number == champion:
        return False, "the champion is another one since, or this one"
    return True, ""
