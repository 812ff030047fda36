"""What Spark itself logs of an application: when its jobs began, and when tasks were running."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_OPTIONS = "TIDEWISE__SPARK__OPTIONS"


@dataclass(frozen=True, slots=True)
class Events:
    """Of one application, epoch seconds.

    Attributes:
        jobs: begin of each Spark job.
        tasks: begin and end of each task.
    """

    jobs: list[float]
    tasks: list[tuple[float, float]]

    @property
    def busy_s(self) -> float:
        """Seconds in which a task was running; in the others only the driver was at work."""
        result, until = 0.0, 0.0
        for begin, end in sorted(self.tasks):
            result += max(end - max(begin, until), 0.0)
            until = max(until, end)
        return result


@contextmanager
def logged_events(folder: Path) -> Iterator[None]:
    """Applications that are submitted inside log their events below ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    options = {"enabled": "true", "dir": folder.as_uri(), "compress": "false", "rolling.enabled": "false"}
    before = os.environ.get(_OPTIONS)
    os.environ[_OPTIONS] = json.dumps({f"spark.eventLog.{name}": value for name, value in options.items()})
    try:
        yield
    finally:
        os.environ.pop(_OPTIONS) if before is None else os.environ.update({_OPTIONS: before})


def read_events(folder: Path) -> Events:
    """Read what all applications have logged below a folder."""
    return parse_events(line for file in sorted(folder.iterdir()) for line in file.open(encoding="utf-8"))


def parse_events(lines: Iterable[str]) -> Events:
    """Read events, a JSON object a line."""
    result = Events([], [])
    for line in lines:
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            result.jobs.append(event["Submission Time"] / 1000)
        elif event["Event"] == "SparkListenerTaskEnd":
            info = event["Task Info"]
            result.tasks.append((info["Launch Time"] / 1000, info["Finish Time"] / 1000))
    return result
