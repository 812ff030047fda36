"""The law of a job's load, learnt step by step from its own errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from models.arrays import Floats
from models.programme.error_shapes import score_shapes
from models.programme.hypotheses import GAIN, SOURCE, expect
from models.programme.law_state import LEADS, PRIOR_STEPS, RECENT, SHARES, LawState, list_slots, slot_of
from models.programme.load_paths import (
    AHEAD,
    CHAMPION,
    DAY,
    LEAST_PER_S,
    PROFILE,
    SOURCES,
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
_SCORED: Final = slice(1, 5)  # places in LEADS by which hypotheses are compared
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
    if not _is_newer(state, at):
        return
    load = _round_load(load_per_s)
    if is_least and not _begins(state, at):
        load = max(load, expect_now(state, at))
    _learn(state.as_one_of_many(), at, np.array([load]), champion(at))


def observe_many(states: LawState, at: int, loads_per_s: Floats) -> None:
    """Learn from a step's finite loads of many jobs, (N,), without a forecast, to the same bits as one by one."""
    if _is_newer(states, at):
        _learn(states, at, np.array([_round_load(one) for one in loads_per_s.tolist()]), None)


def _is_newer(state: LawState, at: int) -> bool:
    return not state.seen or at > state.newest


def _round_load(load_per_s: float) -> float:
    """Round a load, so that what is measured to the sixth digit decides nothing."""
    return math.exp(round(math.log(max(load_per_s, LEAST_PER_S)), 3))


def _begins(state: LawState, at: int) -> bool:
    return not state.seen or (at - state.newest > _LONGEST_GAP and not _is_day_known(state))


def _is_day_known(state: LawState) -> bool:
    return state.seen > DAY and not np.isnan(state.profile).any()


# Below, states are those of N jobs, seen at the same steps: alone a job takes 0.4 ms a step, nearly all of it NumPy's
# calls, and a new job has 432 steps to learn from; of 64 jobs together each takes a fifteenth of that.


def _learn(states: LawState, at: int, load: Floats, forecast: Floats | None) -> None:
    """Learn from the (N,) loads of a step, and from the forecast that all have."""
    if _begins(states, at):
        _begin(states, load)
    else:
        _bridge(states, at, load)
        _follow_mean(states, load)
        _learn_errors(states, at, load)
    states.counts[:, 0], states.counts[:, 1] = at, states.seen + 1
    _keep_origin(states, at, forecast)


def _log_each(values: Floats) -> Floats:
    """Return logarithms as Python's, which are not always NumPy's to the last bit."""
    return np.array([math.log(one) for one in values.tolist()])


def _bridge(states: LawState, at: int, load: Floats) -> None:
    """Add the newest load, and what was missed before it: a line, after a longer gap along the usual day."""
    newest, after = states.newest, _log_each(load)
    before, gap = states.loads[:, -1].copy(), at - newest
    shares = np.arange(1, gap + 1) / gap
    if gap > _LONGEST_GAP:
        usual = states.profile[:, np.arange(newest, at + 1) % DAY]
        begin, end = before - usual[:, 0], after - usual[:, -1]
        line = usual[:, 1:] + begin[:, None] + (end - begin)[:, None] * shares
        states.loads[...] = push_loads(states.loads, line)
        states.origin_at[...] = -1  # it tells nothing of what was expected, nor of the usual day
        states.level[...] = np.log(load[:, None] + states.offsets)[..., None]
        return
    line = before[:, None] + (after - before)[:, None] * shares
    for place, step in enumerate(range(newest + 1, at + 1)):
        states.loads[...] = push_loads(states.loads, line[:, place : place + 1])
        update_profile(states.profile, states.loads, step, states.seen)


def _begin(states: LawState, load: Floats) -> None:
    """Start from a first load, or again after a gap in a day that is not known: the errors that were learnt stay."""
    states.loads[...] = _log_each(load)[:, None]
    states.counts[:, 2] = load
    if not states.seen:
        states.offsets[...] = np.maximum(np.array(SHARES) * load[:, None], LEAST_PER_S)
        states.stretch[...] = np.log(load[:, None] + states.offsets)
    states.counts[:, 1] = 0
    states.origin_at[...] = -1
    states.level[...] = np.log(load[:, None] + states.offsets)[..., None]


def _follow_mean(states: LawState, load: Floats) -> None:
    """Move the scales with the mean load of a day; levels keep the loads that they mean."""
    share, mean = max(1.0 / (states.seen + 1), 1.0 / DAY), states.counts[:, 2]
    mean += share * (np.minimum(load, _MOST_OF_MEAN * mean) - mean)
    wanted = np.maximum(np.array(SHARES) * mean[:, None], LEAST_PER_S)
    jobs, rows = np.nonzero(np.abs(np.log(wanted / states.offsets)) > math.log(_MOVED))
    if not len(jobs):
        return
    old, new = states.offsets[jobs, rows], wanted[jobs, rows]
    for levels in (states.level, states.origin_level.swapaxes(1, 2)):
        moved = levels[jobs, rows]
        by_pair = (slice(None), *(None for _ in moved.shape[1:]))
        levels[jobs, rows] = np.log(np.maximum(np.exp(moved) - old[by_pair], 0.0) + new[by_pair])
    for job, row, before, after in zip(jobs.tolist(), rows.tolist(), old.tolist(), new.tolist(), strict=True):
        stretch = states.stretch[job, row]
        states.stretch[job, row] = math.log(max(math.exp(stretch) - before, 0.0) + after)
    states.offsets[jobs, rows] = new


def _paths_at(states: LawState, at: int) -> Floats:
    """Return (N, S) log of what the paths other than the forecast said of the newest step."""
    says = np.repeat(states.loads[:, -2, None], len(SOURCES), axis=1)
    if states.seen > DAY:
        says[:, YESTERDAY] = states.loads[:, -1 - DAY]
        usual = states.profile[:, at % DAY]
        says[:, PROFILE] = np.where(np.isnan(usual), says[:, PROFILE], usual)
    return says


def _expect_from(states: LawState, slots: list[int], places: list[int], says: Floats) -> Floats:
    """Return (N, L, C, M) what was expected of the newest step from origins, each of a place in LEADS."""
    at = np.repeat(says[:, None], len(slots), axis=1)
    at[..., CHAMPION] = states.origin_champion[:, slots, places]
    offsets = states.offsets[:, None, :, None]
    then, now = (np.log(np.exp(path)[:, :, None] + offsets) for path in (states.origin_path[:, slots], at))
    return expect(states.origin_level[:, slots], then, now, [LEADS[place] for place in places])


def expect_now(state: LawState, at: int) -> float:
    """Return the load of the next step as the best hypothesis expects it, records/s."""
    slot = slot_of(at, 1)
    if slot is None or state.origin_at[slot] != at - 1:
        return float(np.exp(state.loads[-1]))
    scale, best = choose_hypothesis(state)
    one = state.as_one_of_many()
    expected = _expect_from(one, [slot], [0], _paths_at(one, at))[0, 0, scale, best]
    return float(max(np.exp(expected) - state.offsets[scale], LEAST_PER_S))


def _learn_errors(states: LawState, at: int, load: Floats) -> None:
    """Compare the newest load with what was expected of it, and move the levels."""
    logs, says = np.log(load[:, None] + states.offsets), _paths_at(states, at)
    best = choose_each(states)[..., None]
    states.stretch += (logs - states.stretch) / min(states.seen + 1, HALF_LIFE / math.log(2))
    known = [(slot, place) for place, lead in enumerate(LEADS) if (slot := _find_origin(states, at, lead)) is not None]
    if known:
        slots, places = map(list, zip(*known, strict=True))
        leads = slice(len(places)) if places == list(range(len(places))) else places  # a slice takes no copy
        expected = _expect_from(states, slots, places, says)
        error = logs[:, None, :, None] - expected
        usual = np.moveaxis(states.squares[..., leads], -1, 1)  # (N, L, C, M)
        of_best = [np.take_along_axis(one, best[:, None], axis=-1)[..., 0] for one in (error, usual)]
        _learn_shape(states, *(one[:, [place in _SHAPED for place in places]] for one in of_best))
        steps = np.array([1 if LEADS[place] <= RECENT else RECENT for place in places])
        before = np.array([_KEEP**step for step in steps.tolist()]) * states.weight[:, leads]
        square = np.minimum(error**2, _MOST_SQUARES * np.maximum(usual, _LEAST_SD**2))
        own, all_of = before[:, :, None, None], (before + steps)[:, :, None, None]
        squares = (usual * own + square * steps[:, None, None]) / all_of
        states.squares[..., leads] = np.moveaxis(squares, 1, -1)
        states.weight[:, leads] = before + steps
        if places[0] == 0:
            states.level[...] = expected[:, 0]
    _move_level(states, logs)


def _find_origin(states: LawState, at: int, lead: int) -> int | None:
    """Return where the origin of a lead to a step lies, None without one."""
    slot = slot_of(at, lead)
    return None if slot is None or states.origin_at[0, slot] != at - lead else slot


def _learn_shape(states: LawState, error: Floats, usual: Floats) -> None:
    """Learn from (N, Z, C) errors of the best hypotheses at the leads that show the shape, with their usual squares."""
    if not error.shape[1]:
        return
    zs = (error / np.sqrt(np.maximum(usual, 1e-8))).swapaxes(0, 1)  # (Z, N, C)
    recent = np.minimum(np.mean(np.square(zs), axis=0), _RESTLESS_MOST)
    states.restless += (1 - _RESTLESS_KEEP) * (recent - states.restless)
    weight = 1.0 / min(states.seen + PRIOR_STEPS, HALF_LIFE / math.log(2))
    states.calm += np.where(np.abs(zs[0]) < _SHIFT, weight * (np.square(zs[0]) - states.calm), 0.0)
    states.shapes[...] = _KEEP * states.shapes + 0.5 * score_shapes(zs).sum(axis=0)


def _move_level(states: LawState, logs: Floats) -> None:
    """Move every level by its gain, or wholly where its error is too large to be noise."""
    error = logs[..., None] - states.level
    is_shift = np.abs(error) > _SHIFT * np.sqrt(np.maximum(states.squares[..., 0], _LEAST_SHIFT_SD**2))
    states.level += np.where(is_shift, 1.0, GAIN) * error


def _keep_origin(states: LawState, at: int, forecast: Floats | None) -> None:
    """Keep what the newest step is to be an origin of, and take a first forecast for as good as the usual day."""
    logs = None if forecast is None else np.log(np.maximum(forecast, LEAST_PER_S))
    if logs is not None and not states.counts[0, 3]:
        states.counts[:, 3] = 1.0
        own, other = SOURCE == CHAMPION, SOURCE == PROFILE
        pulled = np.flatnonzero(own)[: int(other.sum())]  # the held hypotheses have no path
        states.squares[:, :, pulled] = states.squares[:, :, other]
        states.origin_level[..., pulled] = states.origin_level[..., other]
        states.origin_path[..., CHAMPION] = states.origin_path[..., PROFILE]
        states.level[..., pulled] = states.level[..., other]
    paths = list_paths(states.loads, states.profile, at, states.seen, logs)
    leads = np.minimum(LEADS, AHEAD)
    for slot in list_slots(at):
        states.origin_at[:, slot] = at
        states.origin_level[:, slot] = states.level
        states.origin_path[:, slot] = paths[..., 0]
        states.origin_champion[:, slot] = paths[:, CHAMPION, leads]


def choose_each(state: LawState) -> np.ndarray:
    """Return (..., C) the best hypothesis of each scale: the least mean log square error over the scored leads."""
    return np.asarray(np.log(state.squares[..., _SCORED]).mean(axis=-1).argmin(axis=-1))


def choose_hypothesis(state: LawState) -> tuple[int, int]:
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
