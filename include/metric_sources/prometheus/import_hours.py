"""Raw files of past hours from a Prometheus-compatible server: one file an hour, written once.

What is done is what is there: a run that was killed is continued by the same call, and a second call changes nothing.
An hour of which the server has no sample gets no file, so that the next call asks for it again; so it does where the
server gave fewer steps than the hour has, and what has more of them takes the place of what has fewer.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from include.flink.raw_format import Endpoint, RawRecord, hour_directory, write_lines
from include.metric_sources.prometheus.client import PrometheusError, PrometheusRefusedError
from include.metric_sources.prometheus.known_runs import read_runs
from include.metric_sources.prometheus.source import FILE_PREFIX, WITHOUT_SAMPLES, PrometheusSource
from include.missed_hours import join_hours, read_ingested_hours
from include.place import place
from include.raw_files import KAFKA_PREFIX
from include.raw_lines import DamagedFileError, read_text_lines
from include.settings import Settings
from include.utc import HOUR_S, Interval, format_utc

log = logging.getLogger(__name__)

_QUERIES = 7  # of one fetch
_EMPTY_BYTES = 100  # a compressed file without lines is smaller
_HOUR = timedelta(hours=1)


class NoServerError(PrometheusError):
    """No cluster that is asked for has a Prometheus in the settings."""


@dataclass(frozen=True, slots=True)
class ImportedHour:
    """One hour of an import.

    Attributes:
        hour: its start.
        outcome: ``written``, ``there`` (by an earlier import), ``collected`` (live files lie there: left alone),
            ``ingested`` (they lay there, the lake has their rows, and they are gone: left alone, too), ``empty`` (the
            server has no sample of it) or ``short`` (it has no more than are there, fewer than the hour has).
        records: lines in the file written.
        path: of the file; None when none was written.
        is_short: whether the file has fewer steps than the hour.
    """

    hour: datetime
    outcome: str
    records: int = 0
    path: Path | None = None
    is_short: bool = False


def import_hours(
    source: PrometheusSource,
    cluster: str,
    raw_root: Path,
    interval: Interval,
    *,
    ingested: Collection[datetime] = frozenset(),
    pause_s: float = 0.0,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[ImportedHour]:
    """Write the raw file of every hour that has none; yields hour by hour, in order of time.

    Args:
        source: of the cluster.
        cluster: its name.
        raw_root: of the raw files.
        interval: full hours, all of them past.
        ingested: hours of which the lake has rows.
        pause_s: after each fetch, so that the server has time for others.
        sleep: waits.

    Raises:
        PrometheusError: a query was not answered, or one for a single hour was refused; the hours before stay.
    """
    hour, most, most_gap_s = interval.start, source.longest_hours, source.longest_gap_s

    def find_done(hour: datetime) -> str:
        outcome = find_outcome(raw_root, cluster, hour, ingested)
        is_whole = outcome != "there" or _is_whole(_read_times(file_of(raw_root, cluster, hour)), hour, most_gap_s)
        return outcome if is_whole else ""

    while hour < interval.end:
        outcome = find_done(hour)
        if outcome:
            yield ImportedHour(hour, outcome)
            hour += _HOUR
            continue
        hours = 1
        while hours < most and hour + hours * _HOUR < interval.end and not find_done(hour + hours * _HOUR):
            hours += 1
        try:
            result = source.fetch_hours(hour, hours)
        except PrometheusRefusedError:
            if most == 1:
                raise
            most = max(1, min(most, hours) // 2)  # the server limits the samples of a query
            continue
        for one in (hour + number * _HOUR for number in range(hours)):
            records = source.records_of_hour(result, one, read_runs(raw_root, cluster, one))
            if not tells_something(records):
                yield ImportedHour(one, "empty")
                continue
            path, times = file_of(raw_root, cluster, one), _list_times(map(asdict, records))
            if path.exists() and len(_read_times(path) or ()) >= len(times):
                yield ImportedHour(one, "short", is_short=True)
                continue
            write_lines(path, (record.to_line() for record in records))
            yield ImportedHour(one, "written", len(records), path, is_short=not _is_whole(times, one, most_gap_s))
        sleep(pause_s)
        hour += hours * _HOUR


def tells_something(records: Iterable[RawRecord]) -> bool:
    """Whether lines hold a sample of a job, or a cluster that says that no job runs."""
    return any(
        record.kind != Endpoint.OVERVIEW or json.loads(record.body).get("jobs-running") == 0 for record in records
    )


def _list_times(records: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return when something was measured or a cluster said that no job runs, epoch milliseconds, ascending."""
    return sorted({one["observed_at_ms"] for one in records if one["kind"] == Endpoint.VERTEX_METRICS or _is_idle(one)})


def _is_idle(record: Mapping[str, Any]) -> bool:
    return bool(record["kind"] == Endpoint.OVERVIEW and json.loads(record["body"]).get("jobs-running") == 0)


def _read_times(path: Path) -> list[int] | None:
    """Return the times of a file; None of one that cannot be read, which ingestion names."""
    try:
        return _list_times(map(json.loads, read_text_lines(path)))
    except (DamagedFileError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _is_whole(times_ms: Sequence[int] | None, hour: datetime, most_gap_s: float) -> bool:
    """Whether no time of an hour is without a step for longer than a sample counts; scrapes may be minutes apart."""
    if times_ms is None:
        return True
    start_ms = int(hour.timestamp()) * 1000
    all_ms = [start_ms, *times_ms, start_ms + 1000 * HOUR_S]
    return max(later - earlier for earlier, later in pairwise(all_ms)) <= 1000 * most_gap_s


def file_of(raw_root: Path, cluster: str, hour: datetime) -> Path:
    """Return the path of an hour's file."""
    return hour_directory(raw_root, cluster, hour) / f"{FILE_PREFIX}{hour:%Y%m%dT%H}.jsonl.gz"


def find_outcome(raw_root: Path, cluster: str, hour: datetime, ingested: Collection[datetime] = frozenset()) -> str:
    """Return why an hour is not written: ``there``, ``collected``, ``ingested``; empty when it is to be written.

    Metrics of one hour from two sources would be mixed sample by sample, so an hour that holds others is left alone;
    and what a server still has would replace, once ingested, the rows of an hour whose raw files are gone.
    """
    own = file_of(raw_root, cluster, hour)
    if own.exists() and not _is_empty(own):
        return "there"
    others = hour_directory(raw_root, cluster, hour).glob("*.jsonl*")
    is_collected = any(not path.name.startswith((".", "_", KAFKA_PREFIX)) and path != own for path in others)
    if is_collected:
        return "collected"
    return "ingested" if hour in ingested else ""


def _is_empty(path: Path) -> bool:
    """Whether a file has no line, as earlier releases wrote for an hour without a sample."""
    if path.stat().st_size > _EMPTY_BYTES:
        return False
    try:
        return next(read_text_lines(path), None) is None
    except DamagedFileError:
        return False  # ingestion names a file that cannot be read


def servers(settings: Settings) -> list[str]:
    """Return the clusters that have a Prometheus."""
    return [name for name, one in settings.clusters.items() if one.prometheus.url is not None]


def name_short(cluster: str, hours: Iterable[datetime]) -> str:
    """Return the sentence that names hours with fewer steps than an hour has."""
    spans = ", ".join(f"{format_utc(one.start)} to {format_utc(one.end)}" for one in join_hours(hours))
    return f"{cluster}: fewer steps than an hour has in {spans}: asked for again at the next call"


@dataclass(slots=True)
class ImportResult:
    """What an import has done.

    Attributes:
        counts: outcome -> hours, and ``records``.
        empty: the hours of which the server has no sample.
        short: those of which it has fewer steps than an hour has.
    """

    counts: Counter[str] = field(default_factory=Counter)
    empty: list[datetime] = field(default_factory=list)
    short: list[datetime] = field(default_factory=list)


def name_empty(cluster: str, hours: Iterable[datetime]) -> str:
    """Return the sentence that names hours without a sample; those that follow each other as one span."""
    spans = ", ".join(f"{format_utc(one.start)} to {format_utc(one.end)}" for one in join_hours(hours))
    return f"{cluster}: no sample in {spans}: asked for again at the next call; {WITHOUT_SAMPLES}"


def import_cluster(
    settings: Settings,
    name: str,
    hours: Interval,
    on_hour: Callable[[], None] = lambda: None,
    *,
    is_forced: bool = False,
) -> ImportResult:
    """Write the raw files of a cluster; where it is forced, also of hours that were ingested from files that are gone.

    Raises:
        PrometheusError: a query was not answered; the hours before stay.
        SavedGraphError: a saved graph cannot be used.
    """
    cluster = settings.clusters[name]
    source = PrometheusSource.of(name, cluster)
    made = ImportResult()
    # What a server told may be asked of it again: ingestion refuses what has become less.
    passed_over = (KAFKA_PREFIX, FILE_PREFIX)
    ingested = set[datetime]() if is_forced else read_ingested_hours(settings, name, hours, passed_over)
    try:
        pause_s = _QUERIES / cluster.prometheus.requests_per_s
        for done in import_hours(source, name, place(settings.paths.raw), hours, ingested=ingested, pause_s=pause_s):
            made.counts[done.outcome] += 1
            made.counts["records"] += done.records
            if done.outcome == "empty":
                made.empty.append(done.hour)
            if done.is_short:
                made.short.append(done.hour)
            on_hour()
    finally:
        source.close()
    return made


def import_clusters(
    settings: Settings, hours: Interval, cluster: str | None = None, *, is_forced: bool = False
) -> Counter[str]:
    """Write the raw files of one cluster, or of all that have a Prometheus; returns the outcomes of all together.

    Raises:
        NoServerError: there is none to ask.
        PrometheusError: a query was not answered; the hours before stay.
        SavedGraphError: a saved graph cannot be used.
    """
    known = servers(settings)
    if cluster is not None and cluster not in known:
        raise NoServerError(f"[clusters.{cluster}.prometheus] has no url; write it in the settings")
    if not known:
        raise NoServerError("no cluster has a Prometheus; write [clusters.<name>.prometheus] url in the settings")
    total: Counter[str] = Counter()
    for name in known if cluster is None else [cluster]:
        made = import_cluster(settings, name, hours, is_forced=is_forced)
        total += made.counts
        if made.empty:
            log.warning("%s", name_empty(name, made.empty))
        if made.short:
            log.warning("%s", name_short(name, made.short))
    return total
