"""How long Flink itself waits with a rescale, from a cluster's configuration and a job's checkpoint interval.

Since 1.20 (FLIP-461) a rescale waits for the next completed checkpoint, at most for a given time; before and after that
it waits for its cooldown and for slots. Keys and defaults are those of ``JobManagerOptions`` of 1.20.0 and 2.1.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from include.flink.durations import parse_duration_s
from include.flink.versions import COOLDOWN_KEY, RENAMED, Version, name_key

_ADAPTIVE = "jobmanager.adaptive-scheduler."
_MAX_DELAY_KEY = f"{_ADAPTIVE}rescale-trigger.max-delay"
_FAILURES_KEY = f"{_ADAPTIVE}rescale-trigger.max-checkpoint-failures"
_EXECUTING_KEY = f"{_ADAPTIVE}executing.resource-stabilization-timeout"
_SUBMISSION_KEY = f"{_ADAPTIVE}submission.resource-stabilization-timeout"
_FORCED_KEY = f"{_ADAPTIVE}scaling-interval.max"  # 1.19 and 1.20: less than all slots are taken only after it
_STILL_READ = frozenset({COOLDOWN_KEY, _SUBMISSION_KEY})  # under their earlier names as well
_FAILURES, _COOLDOWN_S, _EXECUTING_S, _SUBMISSION_S = 2, 30.0, 60.0, 10.0

WAITS_FOR_CHECKPOINT_SINCE: Version = (1, 20)
"""The first version whose rescales wait for a checkpoint (FLIP-461)."""
_NEWEST: Version = (99, 0)  # what is not known is taken for a version that waits


@dataclass(frozen=True, slots=True)
class RescaleTimes:
    """The longest that Flink waits with a rescale, s.

    Attributes:
        checkpoint_s: for the next completed checkpoint; 0 before 1.20, and without checkpoints.
        cooldown_s: after an earlier rescale.
        slots_s: for more slots, while the job runs and once it was stopped.
    """

    checkpoint_s: float
    cooldown_s: float
    slots_s: float

    @property
    def total_s(self) -> float:
        """All of them, one after the other."""
        return self.checkpoint_s + self.cooldown_s + self.slots_s


def read_rescale_times(
    configuration: Mapping[str, str], interval_s: float | None, version: Version | None
) -> RescaleTimes:
    """Return how long a cluster waits with a rescale of a job whose checkpoints have an interval, s; None without any.

    A value that cannot be read counts as unset: Flink would not have started with it.
    """
    known = version or _NEWEST
    executing_s = _EXECUTING_S if known >= (2, 0) else 0.0
    cooldown_s = _COOLDOWN_S if known >= (1, 19) else 0.0
    slots_s = _read_s(configuration, _EXECUTING_KEY, known, executing_s)
    slots_s += _read_s(configuration, _SUBMISSION_KEY, known, _SUBMISSION_S)
    if (1, 19) <= known < (2, 0):
        slots_s += _read_s(configuration, _FORCED_KEY, known, 0.0)
    return RescaleTimes(
        checkpoint_s=_read_checkpoint_s(configuration, interval_s, known),
        cooldown_s=_read_s(configuration, COOLDOWN_KEY, known, cooldown_s),
        slots_s=slots_s,
    )


def _read_checkpoint_s(configuration: Mapping[str, str], interval_s: float | None, version: Version) -> float:
    if version < WAITS_FOR_CHECKPOINT_SINCE or interval_s is None:
        return 0.0
    reported = _find(configuration, _FAILURES_KEY, version) or ""
    failures = int(reported) if reported.strip().isdecimal() else _FAILURES
    return _read_s(configuration, _MAX_DELAY_KEY, version, interval_s * (failures + 1))


def _read_s(configuration: Mapping[str, str], key: str, version: Version, default_s: float) -> float:
    result = parse_duration_s(_find(configuration, key, version) or "")
    return default_s if result is None else result


def _find(configuration: Mapping[str, str], key: str, version: Version) -> str | None:
    name = name_key(key, version)
    reported = None if name is None else configuration.get(name)
    before = RENAMED[key].before if key in _STILL_READ else None
    return configuration.get(before) if reported is None and before is not None else reported
