"""One window of a known run, for many states at once: the steps of the replay's engine, for a single stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lab.replay.bound.known_run import KnownRun
from models.arrays import Floats

_NOTHING_S = 1e-6  # as in the engine


@dataclass(frozen=True, slots=True)
class StopState:
    """Whether and why a job does not run, the same for all states of a batch.

    Attributes:
        from_s, until_s: its last downtime, seconds since the start; of one that has run for long -inf.
        failure: place of the failure behind it, None for a rescale.
        checkpoint_s: age of the state that the next failure restores; None where ``until_s`` tells.
    """

    from_s: float = -np.inf
    until_s: float = -np.inf
    failure: int | None = None
    checkpoint_s: float | None = None


@dataclass(frozen=True, slots=True)
class WindowEnd:
    """What (N, M) states have come to at the end of a window.

    Attributes:
        late_s: (N, M) seconds late in the window.
        age_s: (N, M) of the oldest unprocessed record.
        stop: the last downtime.
    """

    late_s: Floats
    age_s: Floats
    stop: StopState


def run_window(known: KnownRun, window: int, slots: slice, age_s: Floats, stop: StopState) -> WindowEnd:
    """Run N numbers of slots through a window.

    A failure finds the job at the checkpoint that the stop tells.  Where that is older than the window, how much had
    been processed by then is not known; it is no more than at the window's beginning, and than had arrived.

    Args:
        known: the run.
        window: its number.
        slots: N of the P numbers of slots.
        age_s: (N, M) or (1, M) age of the oldest record at the beginning.
        stop: last downtime before the window, or of a rescale with its beginning.
    """
    first, steps, step_s = window * known.steps, known.steps, known.step_s
    capacity = known.capacity_per_s[window, slots, None]
    backlog = np.broadcast_to(known.find_backlog(window, age_s), (len(capacity), age_s.shape[1])).copy()
    up = 1.0 - _share_down(known, window, stop.from_s, stop.until_s)
    failures: dict[int, list[int]] = {}
    for failure in known.find_failures(window):
        failures.setdefault(int(known.failure_at_s[failure] // step_s) - first, []).append(failure)
    processed = [known.arrived[first] - backlog]
    late = np.zeros(backlog.shape)
    for k in range(steps):
        rate = float(known.rates_per_s[first + k])
        for failure in failures.get(k, ()):
            if known.failure_at_s[failure] < stop.until_s:
                continue  # a job that is down does not fail again
            restored, stop = _fail(known, window, failure, stop, processed)
            backlog = backlog + np.maximum(processed[-1] - restored, 0.0)
            up = np.maximum(up - _share_down(known, window, known.ends_s[first + k], stop.until_s), 0.0)
        backlog = np.maximum(backlog + (rate - capacity * up[k]) * step_s, 0.0)
        backlog[backlog <= _NOTHING_S * rate] = 0.0
        late += backlog > known.on_time[first + k + 1]
        if failures:
            processed.append(known.arrived[first + k + 1] - backlog)
    return WindowEnd(step_s * late, known.find_age_s(window + 1, backlog), stop)


def _share_down(known: KnownRun, window: int, from_s: float, until_s: float) -> Floats:
    """Return (K,) the share of each step in which a job is down."""
    starts_s = known.ends_s[window * known.steps : (window + 1) * known.steps]
    down_s = np.minimum(until_s, starts_s + known.step_s) - np.maximum(from_s, starts_s)
    return np.asarray(np.clip(down_s, 0.0, known.step_s) / known.step_s)


def _fail(
    known: KnownRun, window: int, failure: int, stop: StopState, processed: list[Floats]
) -> tuple[Floats, StopState]:
    """Return (N, M) the records processed in the state that a failed job restores, and the new stop.

    Args:
        known: the run.
        window: its number.
        failure: its place.
        stop: the last downtime before.
        processed: (N, M) at the ends of this window's steps so far, the beginning first.
    """
    failed_s, began_s = float(known.failure_at_s[failure]), known.begin_s(window)
    age_s = stop.checkpoint_s
    if age_s is None:
        age_s = known.find_checkpoint_age_s(stop.until_s, failed_s)
    at_s = failed_s - age_s
    if stop.from_s <= began_s < stop.until_s and failed_s - stop.until_s <= age_s:
        restored = processed[0]  # no checkpoint yet: the state with which the job came back
    elif at_s < began_s:
        restored = np.minimum(processed[0], np.interp(at_s, known.ends_s, known.arrived))
    else:
        step = min(int((at_s - began_s) // known.step_s), len(processed) - 2)
        share = min((at_s - began_s) / known.step_s - step, 1.0)
        restored = (1.0 - share) * processed[step] + share * processed[step + 1] if step >= 0 else processed[0]
    until_s = failed_s + float(known.failure_downtime_s[failure])
    return restored, StopState(failed_s, until_s, failure)
