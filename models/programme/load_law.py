"""The law of a job's load, learnt step by step from its own errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from models.arrays import Floats
from models.programme.error_shapes import score_shapes
from models.programme.hypotheses import COUNT, GAIN, SOURCE, expect
from models.programme.law_state import LEADS, PRIOR_STEPS, SHARES, LawState, list_slots, slot_of
from models.programme.load_paths import (
    AHEAD,
    CHAMPION,
    DAY,
    LEAST_PER_S,
    PROFILE,
    YESTERDAY,
    list_paths,
    push_loads,
    update_profile,
)

Champion = Callable[[int], Floats | None]
"""Number of a step -> (1 + ``AHEAD``,) records/s of the forecast's median from there on; None without a usable one."""

HALF_LIFE: Final = 36 * 12  # steps after which an error counts half
_KEEP: Final = 0.5 ** (1 / HALF_LIFE)
_RESTLESS_KEEP: Final = 0.5 ** (5 / 45)
_RESTLESS_MOST: Final = 9.0  # one jump is no unrest
_SCORED: Final = (1, 2, 3, 4)  # places in LEADS by which hypotheses are compared
_SHAPED: Final = (0, 1)  # places in LEADS of the errors that show the shape
_MOST_SQUARES: Final = 100.0  # of the usual square error: one odd value is not believed beyond it
_LEAST_SD: Final = 0.05
_SHIFT: Final = 4.0  # standard deviations beyond which an error is a change of the level, until the next denies it
_LEAST_SHIFT_SD: Final = 0.02
_MOST_OF_MEAN: Final = 20.0  # nor does the mean believe more than so many times itself
_MOVED: Final = 1.3  # a scale follows the mean load once it is off by this factor
_LONGEST_GAP: Final = 3 * 12


def observe(state: LawState, at: int, load_per_s: float, champion: Champion, *, is_least: bool = False) -> None:
    """Learn from the load of one step.

    Args:
        state: of the law; changed.
        at: number of the step; one that is not newer than the newest is passed over.
        load_per_s: mean of the step, all sources together; not negative.
        champion: the newest forecast.
        is_least: the load is at least this, since backpressure hid the rest: what was expected counts if it is more.
    """
    newest, count = state.newest, state.seen
    if count and at <= newest:
        return
    # Rounded, so that what is measured to the sixth digit decides nothing.
    load = math.exp(round(math.log(max(load_per_s, LEAST_PER_S)), 3))
    if not count or (at - newest > _LONGEST_GAP and not _is_day_known(state)):
        _begin(state, load)
    else:
        if is_least:
            load = max(load, expect_now(state, at))
        _bridge(state, at, load)
        _follow_mean(state, load, count)
        _learn_errors(state, at, load)
    state.counts[0], state.counts[1] = at, state.seen + 1
    _keep_origin(state, at, champion)


def _is_day_known(state: LawState) -> bool:
    return state.seen > DAY and not np.isnan(state.profile).any()


def _bridge(state: LawState, at: int, load: float) -> None:
    """Add the newest load, and what was missed before it: a line, after a longer gap along the usual day."""
    newest, after = state.newest, math.log(load)
    before, gap = state.loads[-1], at - newest
    shares = np.arange(1, gap + 1) / gap
    if gap > _LONGEST_GAP:
        usual = state.profile[np.arange(newest, at + 1) % DAY]
        begin, end = before - usual[0], after - usual[-1]
        state.loads = push_loads(state.loads, usual[1:] + begin + (end - begin) * shares)
        state.origin_at[:] = -1  # it tells nothing of what was expected, nor of the usual day
        state.level = np.repeat(np.log(load + state.offsets)[:, None], COUNT, axis=1)
        return
    for step, log in enumerate((before + (after - before) * shares).tolist(), newest + 1):
        state.loads = push_loads(state.loads, np.array([log]))
        update_profile(state.profile, state.loads, step, state.seen)


def _begin(state: LawState, load: float) -> None:
    """Start from a first load, or again after a gap in a day that is not known: the errors that were learnt stay."""
    state.loads = np.full(len(state.loads), math.log(load))
    state.counts[2] = load
    if not state.seen:
        state.offsets = np.maximum(np.array(SHARES) * load, LEAST_PER_S)
        state.stretch = np.log(load + state.offsets)
    state.counts[1] = 0
    state.origin_at[:] = -1
    state.level = np.repeat(np.log(load + state.offsets)[:, None], COUNT, axis=1)


def _follow_mean(state: LawState, load: float, seen: int) -> None:
    """Move the scales with the mean load of a day; levels keep the loads that they mean."""
    share = max(1.0 / (seen + 1), 1.0 / DAY)
    state.counts[2] += share * (min(load, _MOST_OF_MEAN * state.counts[2]) - state.counts[2])
    wanted = np.maximum(np.array(SHARES) * state.counts[2], LEAST_PER_S)
    for row in np.flatnonzero(np.abs(np.log(wanted / state.offsets)) > math.log(_MOVED)):
        old, new = state.offsets[row], wanted[row]
        for levels in (state.level[row], state.origin_level[:, row]):
            loads = np.maximum(np.exp(levels) - old, 0.0)
            levels[...] = np.log(loads + new)
        state.stretch[row] = math.log(max(math.exp(state.stretch[row]) - old, 0.0) + new)
        state.offsets[row] = new


def _paths_at(state: LawState, at: int) -> Floats:
    """Return (S,) log of what the paths other than the forecast said of the newest step."""
    says = np.full(3, state.loads[-2])
    if state.seen > DAY:
        says[YESTERDAY] = state.loads[-1 - DAY]
        if not np.isnan(state.profile[at % DAY]):
            says[PROFILE] = state.profile[at % DAY]
    return says


def _expect_from(state: LawState, slot: int, place: int, says: Floats) -> Floats:
    """Return (C, M) what was expected of the newest step from an origin."""
    at = says.copy()
    at[CHAMPION] = state.origin_champion[slot, place]
    offsets = state.offsets[:, None]
    then, now = np.exp(state.origin_path[slot]) + offsets, np.exp(at) + offsets
    return expect(state.origin_level[slot], np.log(then), np.log(now), LEADS[place])


def expect_now(state: LawState, at: int) -> float:
    """Return the load of the next step as the best hypothesis expects it, records/s."""
    slot = slot_of(at, 1)
    if slot is None or state.origin_at[slot] != at - 1:
        return float(np.exp(state.loads[-1]))
    scale, best = choose(state)
    expected = _expect_from(state, slot, 0, _paths_at(state, at))[scale, best]
    return float(max(np.exp(expected) - state.offsets[scale], LEAST_PER_S))


def _learn_errors(state: LawState, at: int, load: float) -> None:
    """Compare the newest load with what was expected of it, and move the levels."""
    logs, says = np.log(load + state.offsets), _paths_at(state, at)
    best = choose_each(state)
    rows = np.arange(len(SHARES))
    state.stretch += (logs - state.stretch) / min(state.seen + 1, HALF_LIFE / math.log(2))
    zs = []
    for place, lead in enumerate(LEADS):
        slot = slot_of(at, lead)
        if slot is None or state.origin_at[slot] != at - lead:
            continue
        expected = _expect_from(state, slot, place, says)
        error = logs[:, None] - expected
        usual = state.squares[:, :, place]
        if place in _SHAPED:
            zs.append(error[rows, best] / np.sqrt(np.maximum(usual[rows, best], 1e-8)))
        steps = 1 if lead <= 12 else 12
        keep = _KEEP**steps
        before = keep * state.weight[place]
        square = np.minimum(error**2, _MOST_SQUARES * np.maximum(usual, _LEAST_SD**2))
        state.squares[:, :, place] = (usual * before + square * steps) / (before + steps)
        state.weight[place] = before + steps
        if lead == 1:
            state.level = expected
    if zs:
        recent = np.minimum(np.mean(np.square(zs), axis=0), _RESTLESS_MOST)
        state.restless += (1 - _RESTLESS_KEEP) * (recent - state.restless)
        weight = 1.0 / min(state.seen + PRIOR_STEPS, HALF_LIFE / math.log(2))
        state.calm += np.where(np.abs(zs[0]) < _SHIFT, weight * (np.square(zs[0]) - state.calm), 0.0)
        state.shapes = _KEEP * state.shapes + 0.5 * score_shapes(np.array(zs)).sum(axis=0)
    _move_level(state, logs)


def _move_level(state: LawState, logs: Floats) -> None:
    """Move every level by its gain, or wholly where its error is too large to be noise."""
    error = logs[:, None] - state.level
    is_shift = np.abs(error) > _SHIFT * np.sqrt(np.maximum(state.squares[:, :, 0], _LEAST_SHIFT_SD**2))
    state.level = state.level + np.where(is_shift, 1.0, GAIN) * error


def _keep_origin(state: LawState, at: int, champion: Champion) -> None:
    """Keep what the newest step is to be an origin of, and take a first forecast for as good as the usual day."""
    forecast = champion(at)
    logs = None if forecast is None else np.log(np.maximum(forecast, LEAST_PER_S))
    if logs is not None and not state.counts[3]:
        state.counts[3] = 1.0
        own, other = SOURCE == CHAMPION, SOURCE == PROFILE
        pulled = np.flatnonzero(own)[: int(other.sum())]  # the held hypotheses have no path
        state.squares[:, pulled] = state.squares[:, other]
        state.origin_level[:, :, pulled] = state.origin_level[:, :, other]
        state.origin_path[:, CHAMPION] = state.origin_path[:, PROFILE]
        state.level[:, pulled] = state.level[:, other]
    paths = list_paths(state.loads, state.profile, at, state.seen, logs)
    leads = np.array(LEADS)
    for slot in list_slots(at):
        state.origin_at[slot] = at
        state.origin_level[slot] = state.level
        state.origin_path[slot] = paths[:, 0]
        state.origin_champion[slot] = paths[CHAMPION, np.minimum(leads, AHEAD)]


def choose_each(state: LawState) -> np.ndarray:
    """Return (C,) the best hypothesis of each scale: the least mean log square error over the scored leads."""
    return np.asarray(np.log(state.squares[:, :, _SCORED]).mean(axis=2).argmin(axis=1))


def choose(state: LawState) -> tuple[int, int]:
    """Return the likeliest scale and its best hypothesis.

    A scale's likelihood is that of its errors under the shape that fits them best: rare bursts over quiet counts are
    likelier as bursts of a quiet load than as one that is never quiet.
    """
    best = choose_each(state)
    rows = np.arange(len(SHARES))
    spread = np.log(state.squares[rows, best][:, _SHAPED]).mean(axis=1)
    density = state.shapes.max(axis=1) / state.weight[0]
    scale = int((spread - 2.0 * density + 2.0 * state.stretch).argmin())
    return scale, int(best[scale])
