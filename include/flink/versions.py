"""What differs between Flink's versions: names of configuration keys, and what can be asked over REST.

Read in the option classes of 1.18.1, 1.20.5, 2.1.3 and 2.3.0 and in Flink's own notes on renames; ``python -m
benchmarks.versions`` tries it on clusters. Keys are called as in Flink 2.0 and later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

Version = tuple[int, int]
"""Major and minor version."""

OLDEST, NEWEST_TRIED = (1, 18), (2, 3)
"""The first version that rescales a running job through REST, and the last one that was tried."""
GC_TIME_SINCE = (1, 20)
"""From this version on a TaskManager that does not tell its time of garbage collection counts as unknown."""
RESCALE_HISTORY_SINCE = (2, 3)
RESCALE_HISTORY_KEY = "web.adaptive-scheduler.rescale-history.size"
"""Above 0 the JobManager keeps so many rescales of a job: exact times and causes."""

_ADAPTIVE = "jobmanager.adaptive-scheduler."
COOLDOWN_KEY = f"{_ADAPTIVE}executing.cooldown-after-rescaling"


@dataclass(frozen=True, slots=True)
class RenamedKey:
    """A key that had another name, or did not exist.

    Attributes:
        since: the first version with the name of today.
        before: its name in earlier versions; None where they have no such key.
        before_since: the first version with the earlier name.
    """

    since: Version
    before: str | None
    before_since: Version = (1, 0)


RENAMED: Mapping[str, RenamedKey] = {
    f"{_ADAPTIVE}submission.resource-wait-timeout": RenamedKey((2, 0), f"{_ADAPTIVE}resource-wait-timeout"),
    f"{_ADAPTIVE}submission.resource-stabilization-timeout": RenamedKey(
        (2, 0), f"{_ADAPTIVE}resource-stabilization-timeout"
    ),
    COOLDOWN_KEY: RenamedKey((2, 0), f"{_ADAPTIVE}scaling-interval.min", before_since=(1, 19)),
    f"{_ADAPTIVE}executing.resource-stabilization-timeout": RenamedKey((2, 0), None),
    f"{_ADAPTIVE}rescale-trigger.max-delay": RenamedKey((2, 0), f"{_ADAPTIVE}max-delay-for-scale-trigger", (1, 20)),
    f"{_ADAPTIVE}rescale-trigger.max-checkpoint-failures": RenamedKey(
        (2, 0), f"{_ADAPTIVE}scale-on-failed-checkpoints-count", (1, 20)
    ),
    "execution.checkpointing.dir": RenamedKey((1, 20), "state.checkpoints.dir"),
    "execution.checkpointing.savepoint-dir": RenamedKey((1, 20), "state.savepoints.dir"),
    "pekko.ask.timeout": RenamedKey((1, 18), "akka.ask.timeout"),
    "restart-strategy.type": RenamedKey((1, 19), "restart-strategy"),
    RESCALE_HISTORY_KEY: RenamedKey(RESCALE_HISTORY_SINCE, None),
}
"""Today's name -> what it was called before."""


def read_version(text: object) -> Version | None:
    """Return major and minor version of a text such as ``2.1.3``; None for a text that names none."""
    result = re.match(r"(\d+)\.(\d+)", text) if isinstance(text, str) else None
    return (int(result[1]), int(result[2])) if result else None


def name_key(key: str, version: Version) -> str | None:
    """Return what a key is called in a version; None where it has no such key."""
    renamed = RENAMED.get(key)
    if renamed is None or version >= renamed.since:
        return key
    return renamed.before if version >= renamed.before_since else None


def find_unread_keys(configuration: Mapping[str, str], version: Version) -> dict[str, str | None]:
    """Return the keys with a name that a version passes over in silence -> the name that it reads, None for none."""
    named = {key: name_key(key, version) for key in configuration if key in RENAMED}
    return {key: name for key, name in named.items() if name != key}


def explain_no_requirements(version: Version | None, *, is_reactive: bool) -> tuple[str, str]:
    """Return why a cluster takes no resource requirements: the name of a reason, and a sentence for a person."""
    if is_reactive:
        return "reactive_mode", "scheduler-mode is reactive: Flink gives the job every slot that it finds"
    if version is not None and version < OLDEST:
        return "flink_too_old", f"Flink {version[0]}.{version[1]} cannot change the parallelism of a running job"
    return "default_scheduler", "without jobmanager.scheduler: adaptive Flink cannot rescale a running job"
