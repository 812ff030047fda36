"""``tidewise import``: raw files of past hours from the Prometheus that scraped a cluster, for ingestion as usual.

Raw files that are there already are ingested by a backfill, which is Airflow's word for runs of past hours.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cli.arguments import CommandParser, UsageError, moment, require_writable
from cli.command import command
from include.metric_sources.prometheus.client import PrometheusError
from include.metric_sources.prometheus.graphs import SavedGraphError
from include.metric_sources.prometheus.import_hours import import_cluster, name_empty, name_short, servers
from include.place import place
from include.settings import Settings, load_settings
from include.utc import Interval, floor_hour, format_utc

SETTLED = timedelta(minutes=10)  # an hour that ended just now may lack its last samples
GO_ON = "the hours before are kept: run it again to go on"


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--source", choices=["prom"], default="prom", help="where from (default: prom)")
    parser.add_argument("--from", dest="start", type=moment, required=True, help="first hour, ISO 8601, UTC")
    parser.add_argument("--to", dest="end", type=moment, required=True, help="end of the hours, exclusive")
    parser.add_argument(
        "--cluster", help="only this one (default: every cluster with [clusters.<name>.prometheus] url)"
    )
    parser.add_argument("--force", action="store_true", help="also hours that were ingested from files that are gone")


def requested_hours(start: datetime, end: datetime, now: datetime) -> Interval:
    """Return the full hours of a request that are past.

    Raises:
        UsageError: it holds none.
    """
    first = floor_hour(start)
    last = min(floor_hour(end), floor_hour(now - SETTLED))
    if not first < last:
        raise UsageError(
            f"no full hour that is past between --from {format_utc(start)} and --to {format_utc(end)}; "
            "--to is exclusive, and the present hour is left to collecting"
        )
    return Interval(first, last)


def chosen_clusters(settings: Settings, cluster: str | None) -> list[str]:
    """Return the clusters to import from.

    Raises:
        UsageError: there is none, or the one named has no server.
    """
    known = servers(settings)
    if cluster is not None and cluster not in known:
        raise UsageError(f"argument --cluster: [clusters.{cluster}.prometheus] has no url; write it in tidewise.toml")
    if not known:
        raise UsageError(
            "no cluster has a Prometheus: write [clusters.<name>.prometheus] url in tidewise.toml; raw files on disk "
            "are ingested by a backfill: tidewise airflow backfill create --dag-id tidewise_hour ..."
        )
    return known if cluster is None else [cluster]


def _show(settings: Settings, clusters: Sequence[str], hours: Interval, *, is_forced: bool) -> None:
    total = int((hours.end - hours.start) / timedelta(hours=1))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        for name in clusters:
            bar = progress.add_task(f"{name}, hours", total=total)
            advance = partial(progress.advance, bar)
            made = import_cluster(settings, name, hours, advance, is_forced=is_forced)
            counts = made.counts
            print(
                f"import: {name}: {counts['written']} hours written ({counts['records']} lines), "
                f"{counts['there'] + counts['short']} there already, {counts['collected']} left as collected, "
                f"{counts['empty']} without a sample"
            )
            if counts["ingested"]:
                print(
                    f"import: {name}: {counts['ingested']} hours are left as ingested, although their raw files are "
                    "gone: what the server has would replace what the lake has (--force fills them as well)"
                )
            if made.empty:
                print(f"import: {name_empty(name, made.empty)}")
            if made.short:
                print(f"import: {name_short(name, made.short)}")
    start, end = format_utc(hours.start), format_utc(hours.end)
    print(f"import: now ingest {start} to {end}: see docs/sources.md")


def run(options: argparse.Namespace, now_s: float) -> None:
    """Import once."""
    settings = load_settings()
    hours = requested_hours(options.start, options.end, datetime.fromtimestamp(now_s, options.start.tzinfo))
    clusters = chosen_clusters(settings, options.cluster)
    require_writable(place(settings.paths.raw), "paths.raw")
    try:
        _show(settings, clusters, hours, is_forced=options.force)
    except PrometheusError as error:
        raise PrometheusError(f"{error}; {GO_ON}") from error


main = command(
    "import", __doc__, _add_arguments, run, errors=(PrometheusError, SavedGraphError), stopped=f"ended early; {GO_ON}"
)
