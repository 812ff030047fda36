"""The policy of the bound's own choices: how many slots a job has in each window of a known run."""

from __future__ import annotations

import numpy as np

from lab.replay.bound.programme import BoundProgramme, BoundSolution
from lab.replay.bound.window_run import StopState, run_window
from models.arrays import Ints


def follow_choices(programme: BoundProgramme, solution: BoundSolution, first_slots: int) -> tuple[Ints, float]:
    """Return the (W,) slots of a job that begins without a backlog and does what is best, and its oldest age, seconds.

    Between ages of the grid the nearer one decides.

    Args:
        programme: of the run.
        solution: of all its windows.
        first_slots: with which the job begins.
    """
    known, ages_s = programme.known, programme.ages_s
    middles_s = 0.5 * (ages_s[1:] + ages_s[:-1])
    path = np.zeros(len(solution.choices), np.int64)
    oldest_s = 0.0
    place, age_s, stop = first_slots - 1, np.zeros((1, 1)), StopState()
    asked: tuple[int, int] | None = None  # the window with which slots come, and the place that they are for
    for window, choices in enumerate(solution.choices):
        is_down = stop.until_s > known.begin_s(window)
        kind = stop.failure if is_down else None
        if asked is not None:
            if window == asked[0]:
                age_s = age_s + programme.again_s * (not is_down)
                place, stop, asked = asked[1], programme.stop_with_slots(window, stop), None
        elif kind is not None or not is_down:
            choice = choices[kind]
            at = int(np.searchsorted(middles_s, age_s[0, 0]))
            checkpoint = 0 if is_down else programme.find_checkpoint(stop.until_s, window)
            flat = (checkpoint * programme.slots_max + place) * len(ages_s) + at
            rescale, target = (
                programme.stop_for_rescale(window, kind),
                int(choice.target[min(place, len(choice.target) - 1), at]),
            )
            # A rescale to as many slots is possible only where another operator changes; it is left out.
            if rescale is not None and target != place and choice.rescales[flat // 8] >> (7 - flat % 8) & 1:
                waits = programme.wait_windows if programme.lacks_slots(place, target) else 0
                if waits:
                    asked = window + waits, target
                else:
                    place, stop, age_s = target, rescale, age_s + programme.again_s * (kind is None)
        end = run_window(known, window, slice(place, place + 1), age_s, stop)
        path[window], age_s, stop = place + 1, end.age_s, end.stop
        oldest_s = max(oldest_s, float(age_s[0, 0]))
    return path, oldest_s
