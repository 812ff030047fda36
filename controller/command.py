"""The controller's command line: one tick at a time in the past, one now, or ticks until a time."""

from __future__ import annotations

import argparse
import logging
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime

from controller.evaluation.evaluators import LOG_FORMAT
from controller.health import ControllerHealth
from controller.health_server import AddressError, parse_address, serve_health
from controller.loop import poll_once, run_ticks, warm_up
from controller.tick import Ticker, TickSummary
from controller.view.recent_files import list_clusters
from controller.watching import watch_ticks
from controller.wired_settings import explain_changes
from controller.wiring import build_ticker
from include.control.cleanup import delete_ended
from include.place import place
from include.readers import close_out
from include.settings import Settings, SettingsError, load_settings
from include.spark.submission import anchor_paths
from include.utc import HOUR_S, IntervalError, format_utc, parse_utc

EXIT_USAGE = 2
log = logging.getLogger(__name__)
FOREVER_S = float("inf")


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(prog="controller", description=__doc__)
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--as-of", help="make one tick at this time (ISO 8601, UTC), without any request to a cluster")
    when.add_argument("--once", action="store_true", help="poll every cluster once and make one tick")
    when.add_argument("--until", help="go on until this time (ISO 8601, UTC); default: until it is stopped")
    when.add_argument("--seconds", type=float, help="go on for so long")
    when.add_argument("--watch", action="store_true", help="only say whether a controller's ticks come in time; else 1")
    parser.add_argument("--cluster", action="append", help="only this cluster; may be given several times")
    parser.add_argument(
        "--listen", metavar="HOST:PORT", help="answer /health and /metrics there; default: no port is open"
    )
    options = parser.parse_args(argv)
    if options.listen is not None and (options.once or options.watch or options.as_of is not None):
        parser.error("--listen is for a controller that goes on, not for one tick")
    return options


def load_anchored() -> Settings:
    """Return the settings as they are now, with paths that do not depend on the working directory."""
    return anchor_paths(load_settings())


def choose_clusters(settings: Settings, asked: Sequence[str] | None) -> list[str]:
    """Return the clusters to control: those that were asked for, else all that have an address or raw files.

    Raises:
        SettingsError: one that was asked for is not known.
    """
    known = sorted({*settings.clusters, *list_clusters(place(settings.paths.raw))})
    unknown = sorted(set(asked or ()) - set(known))
    if unknown:
        raise SettingsError(f"no cluster is called {', '.join(unknown)}; known are {', '.join(known) or 'none'}")
    return [name for name in known if not asked or name in asked]


def main(argv: Sequence[str]) -> int:
    """Run the controller; returns the exit code."""
    options = parse_arguments(argv)
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, stream=sys.stdout)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        settings = load_anchored()
        close_out(settings)
        clusters = choose_clusters(settings, options.cluster)
        as_of = None if options.as_of is None else parse_utc(options.as_of)
        until = None if options.until is None else parse_utc(options.until)
        address = None if options.listen is None else parse_address(options.listen)
    except (SettingsError, IntervalError, AddressError) as error:
        print(f"controller: {error}", file=sys.stderr)
        return EXIT_USAGE
    if not clusters:
        print("controller: no cluster has a rest_url or raw files: nothing to control")
        return 0
    if options.watch:
        return watch_ticks(settings, clusters, time.time(), os.environ)
    clock = time.time if as_of is None else as_of.timestamp
    ticker = start(settings, clusters, clock, is_rehearsal=as_of is not None)
    if options.once:
        poll_once(ticker, settings, clusters)
    if options.once or as_of is not None:
        show(ticker.tick(), clock())
        ticker.close()
        return 0
    until_s = until.timestamp() if until is not None else FOREVER_S
    if options.seconds is not None:
        until_s = clock() + options.seconds
    health = ControllerHealth(time.monotonic, settings.health.controller_late_s)
    try:
        with serve_health(health, *address) if address else nullcontext():
            go_on(ticker, settings, clusters, until_s, Process(options.cluster, clock, stop, health))
    except AddressError as error:
        ticker.close()
        print(f"controller: {error}", file=sys.stderr)
        return EXIT_USAGE
    return 0


@dataclass(frozen=True, slots=True)
class Process:
    """What stays the same while the parts are made anew with other settings.

    Attributes:
        asked: clusters that the command line names.
        clock: epoch seconds.
        stop: set to end early.
        health: takes each tick.
    """

    asked: Sequence[str] | None
    clock: Callable[[], float]
    stop: threading.Event
    health: ControllerHealth


def go_on(ticker: Ticker, settings: Settings, clusters: Sequence[str], until_s: float, process: Process) -> None:
    """Make ticks until a time, with parts that are made anew where the settings ask for it."""
    cleaned_s = -math.inf
    while True:
        again = RestartCheck(settings, ticker, process.asked)

        def take(summary: TickSummary, made_by: Ticker = ticker) -> None:
            nonlocal cleaned_s
            if process.clock() - cleaned_s >= HOUR_S:
                cleaned_s = process.clock()
                delete_ended(made_by.settings.paths.lake, cleaned_s)
            process.health.note_tick(summary, process.clock(), made_by.settings.health.controller_late_s)
            show(summary, process.clock())

        why = run_ticks(
            ticker,
            settings,
            clusters,
            until_s,
            clock=process.clock,
            stop=process.stop,
            on_tick=take,
            explain_anew=again.explain,
        )
        if not why:
            return
        log.warning("%s", why)
        settings, clusters = again.settings, again.clusters
        ticker = start(settings, clusters, process.clock)


class RestartCheck:
    """Says when all has to begin anew, since the settings that the parts were made with have changed.

    Args:
        settings: that they were made with.
        ticker: made of them.
        asked: clusters that the command line names.
    """

    def __init__(self, settings: Settings, ticker: Ticker, asked: Sequence[str] | None) -> None:
        self.settings, self._ticker, self._asked = settings, ticker, asked
        self.clusters: list[str] = []

    def explain(self) -> str:
        """Return why all begins anew; empty while it goes on, stopped where it may not."""
        now = self._ticker.settings
        why = explain_changes(self.settings, now)
        if not why:
            return ""
        try:
            now_clusters = choose_clusters(now, self._asked)
        except SettingsError as error:  # what is controlled stays stopped
            log.error("%s", error)
            return ""
        if now_clusters:
            self.settings, self.clusters = now, now_clusters
        return why if now_clusters else ""


def start(
    settings: Settings, clusters: Sequence[str], clock: Callable[[], float], *, is_rehearsal: bool = False
) -> Ticker:
    """Return what makes the ticks of some clusters, with the replies of the last polls."""
    owner = f"{socket.gethostname()}:{os.getpid()}"
    ticker = build_ticker(load_anchored, clusters, owner, clock, is_rehearsal=is_rehearsal)
    replies = warm_up(ticker, settings, clusters, clock())
    print(f"controller: {len(clusters)} clusters, {replies} replies of the last polls taken up", flush=True)
    return ticker


def show(summary: TickSummary, now_s: float) -> None:
    """Print what a tick did, unless that is nothing."""
    if not summary.is_eventful:
        return
    print(f"controller: {format_utc(datetime.fromtimestamp(round(now_s), UTC))} {summary}", flush=True)
