"""The reviews that teams have installed: found by their entry points, asked in the order of their names.

A review that cannot be loaded, raises, says what it may not or takes too long vetoes, by its name.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint, entry_points
from queue import Empty, SimpleQueue

from models.control.case import Case
from models.control.reviewed_step import (
    describe_situation,
    describe_step,
    fail,
    is_reviewed,
    name_vertices,
    take_review,
)
from models.control.state import Intention
from models.control.step_review import Situation, Step, StepReview

log = logging.getLogger(__name__)
GROUP = "tidewise.step_review"
"""Group of the entry points."""
TIMEOUT_S = 1.0
"""A review has so long for one step; it computes, and asks nobody."""
LOAD_TIMEOUT_S = 30.0
PAUSE_S = 60.0
"""After one that took too long it vetoes without being asked: a tick with many jobs must not wait for each."""


@dataclass(slots=True)
class NamedReview:
    """A review that is asked with a time limit.

    Attributes:
        name: of its entry point.
        review: the function; None when it could not be loaded.
        timeout_s: it has so long for one step.
    """

    name: str
    review: StepReview | None
    problem: str = ""
    timeout_s: float = TIMEOUT_S
    monotonic: Callable[[], float] = time.monotonic
    _paused_until_s: float = field(default=float("-inf"), init=False)
    _late: threading.Thread | None = field(default=None, init=False)

    def ask(self, step: Step, situation: Situation) -> tuple[object, str]:
        """Return what the review says, and why it says nothing (empty: it does)."""
        review = self.review
        if review is None:
            return None, self.problem
        if self.monotonic() < self._paused_until_s or (self._late is not None and self._late.is_alive()):
            return None, f"took longer than {self.timeout_s:g} s lately"
        reported, problem, self._late = call_within(lambda: review(step, situation), self.timeout_s)
        if self._late is not None:
            self._paused_until_s = self.monotonic() + PAUSE_S
        return reported, problem


def call_within(function: Callable[[], object], timeout_s: float) -> tuple[object, str, threading.Thread | None]:
    """Return what a function returns, why it returns nothing (empty: it does), and its thread if that goes on.

    A thread cannot be ended: it keeps neither the process from its end nor the caller from an answer.
    """
    answers: SimpleQueue[tuple[object, str]] = SimpleQueue()

    def call() -> None:
        try:
            answers.put((function(), ""))
        except BaseException as error:  # whatever it raises, the controller goes on
            answers.put((None, f"raised {type(error).__name__}: {error}"))

    thread = threading.Thread(target=call, name="step review", daemon=True)
    thread.start()
    try:
        return *answers.get(timeout=timeout_s), None
    except Empty:
        return None, f"took longer than {timeout_s:g} s", thread


@dataclass(frozen=True, slots=True)
class StepReviews:
    """All reviews that are installed, in the order in which they are asked."""

    reviews: tuple[NamedReview, ...] = ()

    def __call__(self, job: str, case: Case, operators: Mapping[str, str]) -> Case:
        """Return a case with its step as the reviews leave it. ``operators``: vertex id -> name, where it is known."""
        if case.desired is None or not is_reviewed(case):
            return case
        return replace(case, desired=self._review(job, case, case.desired, operators))

    def _review(self, job: str, case: Case, desired: Intention, operators: Mapping[str, str]) -> Intention:
        asked = case.observed.requested or {}
        names = name_vertices({**asked, **desired.parallelism}, operators)
        for one in self.reviews:  # each gets its own: what it does to them must not reach the next
            step = describe_step(job, desired, case.observed, names)
            try:
                reported, problem = one.ask(step, describe_situation(case, names))
                desired = (
                    fail(one.name, problem, desired)
                    if problem
                    else take_review(one.name, reported, desired, asked, names)
                )
            except Exception as error:  # an answer that cannot be read
                desired = fail(one.name, f"its answer cannot be read: {type(error).__name__}: {error}", desired)
            if desired.objection:
                break
        return desired


def load_reviews(result: Iterable[EntryPoint] | None = None) -> StepReviews:
    """Return the reviews that are installed, or those of given entry points."""
    try:
        points = sorted(entry_points(group=GROUP) if result is None else result, key=lambda one: (one.name, one.value))
    except Exception as error:  # a distribution beside this one may be damaged
        log.exception("the reviews that are installed cannot be listed: every step is vetoed")
        problem = f"what is installed cannot be listed: {type(error).__name__}: {error}"
        return StepReviews((NamedReview(GROUP, None, problem),))
    reviews = tuple(_load(point) for point in points)
    if reviews:
        log.info("steps are reviewed by %s", ", ".join(one.name for one in reviews))
    return StepReviews(reviews)


def _load(point: EntryPoint) -> NamedReview:
    review, problem, _ = call_within(point.load, LOAD_TIMEOUT_S)
    if callable(review):
        return NamedReview(point.name, review)
    problem = f"cannot be loaded: {problem}" if problem else f"{point.value} is no function"
    log.error("review %s (%s) %s: it vetoes every step", point.name, point.value, problem)
    return NamedReview(point.name, None, problem)
