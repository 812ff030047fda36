"""The last raw files of each cluster, from which a controller that starts takes up what was polled before."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime, timedelta
from pathlib import Path

from include.flink.raw_format import RawRecord, hour_directory
from include.place import place
from include.policy_catalogue import Decides, entry_of
from include.raw_files import is_raw_name
from include.raw_lines import DamagedFileError, read_text_lines
from include.settings import Cluster, Settings
from include.utc import HOUR, HOUR_S, floor_hour

WINDOWS = 2  # as many as an evaluation averages over: a cluster with long windows is read further back
_FIELDS = tuple(field.name for field in fields(RawRecord))
log = logging.getLogger(__name__)


def span_s(settings: Settings, cluster: str) -> int:
    """Return how far back the polls of a cluster are of use.

    A policy that reacts is shown the windows of ``planner.observed_h`` hours, wherever one is in use.
    """
    window_s, options = settings.cluster(cluster).window_s, settings.planner
    reacts = any(entry_of(name).decides is Decides.REACTS for name in options.policies_in_use)
    shown_s = round(HOUR_S * options.observed_h) if reacts else 0
    return max(settings.apply.watch_span_s, (WINDOWS + 1) * window_s, shown_s) + window_s


def polls_kept(settings: Settings) -> int:
    """Return how many polls of a vertex hold the longest span of any cluster."""
    listed = {"": Cluster(), **settings.clusters}
    return max(math.ceil(span_s(settings, name) / one.poll_every_s) for name, one in listed.items()) + 1


def list_clusters(raw_root: Path) -> list[str]:
    """Return the clusters that have raw files."""
    return sorted(path.name.partition("=")[2] for path in raw_root.glob("cluster=*") if path.is_dir())


def read_recent(settings: Settings, cluster: str, as_of: datetime) -> list[RawRecord]:
    """Return the replies of the last polls of a cluster, until ``as_of``.

    Those within the span that evaluations look at; where there are none, those of the last hour with files that is not
    older than what a plan may be made from.  A line that cannot be read is passed over: ingestion quarantines it.
    """
    raw_root, until_ms = place(settings.paths.raw), as_of.timestamp() * 1000
    since = as_of - timedelta(seconds=span_s(settings, cluster))
    oldest = as_of - timedelta(hours=settings.planner.max_input_age_h)
    hour, result = floor_hour(as_of), list[RawRecord]()
    while hour + HOUR > min(since, oldest):
        for path in _list_files(hour_directory(raw_root, cluster, hour)):
            result += [one for one in _read_file(path, cluster) if one.observed_at_ms <= until_ms]
        if result and hour <= since:
            break
        hour -= HOUR
    if not result:
        return []
    newest_ms = max(record.observed_at_ms for record in result)
    return [one for one in result if one.observed_at_ms > newest_ms - 1000 * max(span_s(settings, cluster), HOUR_S)]


def _list_files(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if is_raw_name(path.name))
    except OSError:  # no polls in that hour, or nobody may list them
        return []


def _read_file(path: Path, cluster: str) -> Iterator[RawRecord]:
    try:
        for line in read_text_lines(path):
            record = _read_line(line)
            if record is not None and record.cluster == cluster:
                yield record
    except DamagedFileError as error:
        log.warning("%s: not read to its end: %s", path, error)


def _read_line(line: str) -> RawRecord | None:
    try:
        result = json.loads(line)
        record = RawRecord(**{name: result[name] for name in _FIELDS})
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    is_typed = type(record.observed_at_ms) is int and isinstance(record.body, str) and isinstance(record.kind, str)
    is_named = all(value is None or isinstance(value, str) for value in (record.job_id, record.vertex_id))
    return record if is_typed and is_named and type(record.status) is int else None
