"""Which runs are missing, and how long they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.live.policies import TIDEWISE
from benchmarks.live.results import is_done

CALIBRATION_MIN, BUILD_MIN = 14.0, 5.0
AROUND_MIN = 2.5
"""Of each run: a cluster starts, and the job works off its backlog at the end."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """A run by its policy, job and seed."""

    policy: str
    job: str
    seed: int


def list_missing(folder: Path, keys: Sequence[RunKey], minutes: float, *, accepts_invalid: bool) -> list[RunKey]:
    """Return the runs of this length that are still to be made."""
    return [
        key
        for key in keys
        if not is_done(folder, (key.policy, key.job, key.seed), minutes, accepts_invalid=accepts_invalid)
    ]


def estimate_minutes(
    missing: Sequence[RunKey], calibrations: int, run_min: float, prepare_min: float, *, builds: bool
) -> float:
    """Return minutes of wall time.

    Args:
        missing: runs to be made.
        calibrations: jobs that are measured first.
        run_min: length of the load of a run.
        prepare_min: for the stages before each run of Tidewise.
        builds: whether the autoscaler is built.
    """
    prepared = sum(key.policy == TIDEWISE for key in missing)
    return (
        len(missing) * (run_min + AROUND_MIN)
        + prepared * prepare_min
        + calibrations * CALIBRATION_MIN
        + builds * BUILD_MIN
    )
