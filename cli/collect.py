"""``python -m cli.collect``: bring raw payloads below the raw root, from running clusters or from a folder of files."""

from __future__ import annotations

import argparse
import signal
import sys
import threading

from cli.arguments import CommandParser, folder, number, require_writable
from cli.command import command
from cli.raw_import import FileSource
from include.metric_sources.collection import CollectionError, collect_for
from include.metric_sources.live_sources import observed_clusters
from include.metric_sources.prometheus.graphs import SavedGraphError
from include.place import place
from include.settings import load_settings


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--seconds", type=number(0, 86_400), default=0.0, help="seconds of polling the live clusters (default: once)"
    )
    parser.add_argument("--files", type=folder, help="copy the files of this folder (cluster=/date=/hour=) instead")


def run(options: argparse.Namespace, _: float) -> int:
    """Collect once; returns the exit code."""
    settings = load_settings()
    require_writable(place(settings.paths.raw), "paths.raw")
    if options.files is not None:
        delivery = FileSource(options.files).deliver(place(settings.paths.raw))
    elif observed_clusters(settings):
        delivery = collect_for(settings, options.seconds, stop=stop_event())
    else:
        raise CollectionError("no cluster has a rest_url, prometheus.url or kafka: name one in tidewise.toml")
    for name, reason in delivery.refused.items():
        print(f"collect: {name} refused: {reason}", file=sys.stderr)
    print(f"collect: {delivery.written} files written, {delivery.kept} there already")
    return 1 if delivery.refused else 0


def stop_event() -> threading.Event:
    """Return an event that SIGTERM sets, so that polling ends within a moment and leaves no half file."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    return stop


main = command("collect", __doc__, _add_arguments, run, errors=(CollectionError, SavedGraphError))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
