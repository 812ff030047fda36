"""When the Spark jobs of an application began, as Spark itself logs it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OPTIONS = "TIDEWISE__SPARK__OPTIONS"


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


def read_job_starts(folder: Path) -> list[float]:
    """Return when each job of all applications that have logged below a folder began, epoch seconds."""
    events = (json.loads(line) for file in sorted(folder.iterdir()) for line in file.open(encoding="utf-8"))
    return [event["Submission Time"] / 1000 for event in events if event["Event"] == "SparkListenerJobStart"]
