"""What came of each event: errors of the age, minutes to the first right wish, to running, to caught up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.nexmark.dynamics.schedule import Event
from benchmarks.nexmark.dynamics.series import Series

OLD_S = 30.0
"""Above this true age errors count."""
CAUGHT_UP_S = 10.0
_RESTED_S = 300.0
_LOOKS_IN_A_ROW = 3
_AROUND_S = 10.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """An event of a job under a policy; minutes since the event began, NaN for what did not happen.

    Attributes:
        kind: of the event.
        largest_age_s: true age before the sink.
        error_s: mean error of the age as Tidewise measures it, where the true age is above 30 s, its source has
            enough slots or not, and no task restarted in the five minutes before.
        formula_s: the same of backlog / rate taken in.
        error_in_all_s, formula_in_all_s: the same, restarts or not.
        windows: of the first two, and of the second two.
        wish_minutes: to the first wish for more slots of the costly vertex.
        running_minutes: to more slots that run.
        caught_up_minutes: to an age of at most 10 s that lasts, after one above it.
        wishes: changes of what is wanted.
        taken_back: roll-backs.
        smaller_while_behind: wishes for fewer slots while the true age is above 30 s.
    """

    kind: str
    largest_age_s: float
    error_s: float
    formula_s: float
    error_in_all_s: float
    formula_in_all_s: float
    windows: tuple[int, int]
    wish_minutes: float
    running_minutes: float
    caught_up_minutes: float
    wishes: int
    taken_back: int
    smaller_while_behind: int

    def to_json(self) -> dict[str, Any]:
        """Return it without NaN, which JSON lacks."""
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in asdict(self).items()
        }


def judge_events(series: Series, schedule: Iterable[Event]) -> list[Outcome]:
    """Return what came of each event of a job."""
    return [_judge(series, event) for event in schedule]


def _judge(series: Series, event: Event) -> Outcome:
    within = [(at, age) for at, age in series.ages if event.begins_s <= at < event.ends_s]
    rested, everything = list[tuple[float, float]](), list[tuple[float, float]]()
    for window in series.windows:
        true_s = _find_age(series.ages, window.end_s)
        if event.begins_s <= window.end_s < event.ends_s and true_s > OLD_S and window.age_s is not None:
            formula_s = math.nan if window.formula_s is None else abs(window.formula_s - true_s)
            everything.append((abs(window.age_s - true_s), formula_s))
            if not _restarted(series, window.end_s):
                rested.append(everything[-1])
    wishes = [wish for wish in _list_wishes(series) if event.begins_s <= wish[0] < event.ends_s]
    more_s = next((at for at, wanted, running, _ in wishes if wanted > running), math.nan)
    before = [p for at, p, _, up in series.states if at < event.begins_s and up][-1:] or [0]
    runs_s = next(
        (at for at, p, _, up in series.states if event.begins_s < at < event.ends_s and up and p > before[0]), math.nan
    )
    error, formula = _mean(rested)
    error_all, formula_all = _mean(everything)
    return Outcome(
        event.kind,
        max((age for _, age in within), default=math.nan),
        error,
        formula,
        error_all,
        formula_all,
        (len(rested), len(everything)),
        (more_s - event.begins_s) / 60,
        (runs_s - event.begins_s) / 60,
        (_find_caught_up(within) - event.begins_s) / 60,
        len(wishes),
        sum(verb == "roll_back" for *_, verb in wishes),
        sum(wanted < running and _find_age(series.ages, at) > OLD_S for at, wanted, running, _ in wishes),
    )


def _list_wishes(series: Series) -> list[tuple[float, int, int, str]]:
    """Return (time, wanted, running, verb) of each change: of the log where there is one, else of Flink's bounds."""
    result = list[tuple[float, int, int, str]]()
    if series.wishes:
        last = 0
        for at_s, wanted, running, verb, _ in series.wishes:
            if verb in {"rescale", "roll_back", "refuse", "wait"} and wanted not in {last, running}:
                result.append((at_s, wanted, running, verb))
            last = wanted
        return result
    bound = 0
    for at_s, _, wanted, _ in series.states:
        if wanted != bound and bound:
            result.append((at_s, wanted, bound, "rescale"))
        bound = wanted
    return result


def _find_age(ages: Sequence[tuple[float, float]], at_s: float) -> float:
    near = [age for at, age in ages if abs(at - at_s) <= _AROUND_S]
    return float(np.mean(near)) if near else math.nan


def _restarted(series: Series, at_s: float) -> bool:
    return any(at_s - _RESTED_S < at <= at_s and not up for at, _, _, up in series.states)


def _find_caught_up(ages: Sequence[tuple[float, float]]) -> float:
    """Return when the age was low for some looks in a row, after it was not; NaN where it never rose or never fell."""
    rose, low = False, 0
    for at_s, age_s in ages:
        rose = rose or age_s > CAUGHT_UP_S
        low = low + 1 if rose and age_s <= CAUGHT_UP_S else 0
        if low == _LOOKS_IN_A_ROW:
            return at_s
    return math.nan


def _mean(errors: Sequence[tuple[float, float]]) -> tuple[float, float]:
    if not errors:
        return math.nan, math.nan
    ours, formula = np.array(errors).T
    return float(ours.mean()), float(np.nanmean(formula)) if np.isfinite(formula).any() else math.nan
