"""Raw files of past hours from a Prometheus-compatible server: one file an hour, written once.

What is done is what is there: a run that was killed is continued by the same call, and a second call changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from include.flink.raw_format import hour_directory, write_lines
from include.prometheus.known_runs import read_runs
from include.prometheus.source import FILE_PREFIX, PrometheusSource
from include.utc import Interval

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class HourDone:
    """One hour of a backfill.

    Attributes:
        hour: its start.
        outcome: ``written``, ``there`` (by an earlier backfill) or ``collected`` (live files lie there: left alone).
        records: lines in the file written.
        path: of the file; None when none was written.
    """

    hour: datetime
    outcome: str
    records: int = 0
    path: Path | None = None


def backfill(
    source: PrometheusSource,
    cluster: str,
    raw_root: Path,
    interval: Interval,
    *,
    pause_s: float = 0.0,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[HourDone]:
    """Write the raw file of every hour that has none; yields hour by hour, in order of time.

    Args:
        source: of the cluster.
        cluster: its name.
        raw_root: of the raw files.
        interval: full hours, all of them past.
        pause_s: after each fetch, so that the server has time for others.
        sleep: waits.

    Raises:
        PrometheusError: a query was not answered; the hours before stay.
    """
    hour = interval.start
    while hour < interval.end:
        outcome = find_outcome(raw_root, cluster, hour)
        if outcome:
            yield HourDone(hour, outcome)
            hour += _HOUR
            continue
        hours = 1
        while (
            hours < source.longest_hours
            and hour + hours * _HOUR < interval.end
            and not find_outcome(raw_root, cluster, hour + hours * _HOUR)
        ):
            hours += 1
        found = source.fetch_hours(hour, hours)
        for one in (hour + number * _HOUR for number in range(hours)):
            records = source.records_of_hour(found, one, read_runs(raw_root, cluster, one))
            path = file_of(raw_root, cluster, one)
            write_lines(path, (record.to_line() for record in records))
            yield HourDone(one, "written", len(records), path)
        sleep(pause_s)
        hour += hours * _HOUR


def file_of(raw_root: Path, cluster: str, hour: datetime) -> Path:
    """Return the path of an hour's file."""
    return hour_directory(raw_root, cluster, hour) / f"{FILE_PREFIX}{hour:%Y%m%dT%H}.jsonl.gz"


def find_outcome(raw_root: Path, cluster: str, hour: datetime) -> str:
    """Return why an hour is not written: ``there``, ``collected``; empty when it is to be written.

    Metrics of one hour from two sources would be mixed sample by sample, so an hour that holds others is left alone.
    """
    if file_of(raw_root, cluster, hour).exists():
        return "there"
    others = hour_directory(raw_root, cluster, hour).glob("*.jsonl*")
    is_collected = any(not path.name.startswith((".", "_", "kafka-")) for path in others)
    return "collected" if is_collected else ""
