"""Whether the reactive controller has fresh input, and what its last evaluation released: read from files, no Spark."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from include.atomic_write import write_json
from include.flink.raw_format import hour_directory
from include.settings import Settings
from include.utc import IntervalError, floor_hour, format_utc, parse_utc

WATCHED = "planner"
"""The policy whose jobs the reactive controller evaluates."""
LOOKED = "watched.json"
FRESH_TURNS = 2  # metrics are fresh for so many evaluations: one poll may come late or fail


def unseen_after(settings: Settings) -> timedelta:
    """Return how old a job's last metrics may be for the reactive controller to decide on it."""
    return timedelta(seconds=FRESH_TURNS * settings.planner.timing.apply_every_s)


def something_to_watch(settings: Settings, as_of: datetime) -> bool:
    """Whether the watch stage is worth starting: some raw file was written shortly before ``as_of``.

    Only a local raw root is listed; behind any other URI a cluster with an address counts as polled.
    """
    if not settings.apply.watch or WATCHED not in settings.planner.policies_in_use:
        return False
    if ":" in settings.paths.raw.split("/", maxsplit=1)[0]:
        return any(cluster.rest_url is not None for cluster in settings.clusters.values())
    since = as_of - unseen_after(settings)
    return any(since.timestamp() <= written_s <= as_of.timestamp() for written_s in _written(settings, since, as_of))


def _written(settings: Settings, since: datetime, as_of: datetime) -> Iterator[float]:
    """Yield when the files in the hours' directories were written, epoch seconds."""
    root = Path(settings.paths.raw)
    hours = sorted({floor_hour(since), floor_hour(as_of)})
    for cluster in sorted(root.glob("cluster=*")):
        for hour in hours:
            directory = hour_directory(root, cluster.name.partition("=")[2], hour)
            if not directory.is_dir():
                continue
            with os.scandir(directory) as entries:
                yield from (entry.stat().st_mtime for entry in entries if not entry.name.startswith("."))


def remove_looked(settings: Settings) -> None:
    """Remove the file of the last evaluation before the table is written: without it steps may have been released."""
    (Path(settings.paths.out) / LOOKED).unlink(missing_ok=True)


def write_looked(settings: Settings, as_of: datetime, released: int) -> None:
    """Record how many steps an evaluation released."""
    write_json(Path(settings.paths.out) / LOOKED, {"as_of": format_utc(as_of), "released": released})


def released(settings: Settings, as_of: datetime) -> bool:
    """Whether the evaluation at ``as_of`` released a step; an unreadable file counts as yes, an older one as no."""
    try:
        found = json.loads((Path(settings.paths.out) / LOOKED).read_text())
        return parse_utc(found["as_of"]) == as_of and int(found["released"]) > 0
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IntervalError):
        return True
