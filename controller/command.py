"""The controller's process: one tick at a time in the past, one now, or ticks until a time, with polling beside."""

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
from datetime import UTC, datetime

from controller.evaluation.evaluators import LOG_FORMAT
from controller.health import ControllerHealth
from controller.health_server import AddressError, parse_address, serve_health
from controller.tick import Ticker, TickSummary
from controller.view.recent_files import list_clusters, read_recent
from controller.watching import watch_ticks
from controller.wired_settings import explain_changes
from controller.wiring import build_ticker
from include.control.cleanup import delete_ended
from include.metric_sources.collection import collect_for
from include.place import place
from include.readers import close_out
from include.settings import Settings, SettingsError, load_settings
from include.spark.submission import anchor_paths
from include.utc import HOUR_S, IntervalError, format_utc, parse_utc

EXIT_USAGE = 2
log = logging.getLogger(__name__)
FOREVER_S = float("inf")
TICK_SHARE = 0.5  # of the time between two ticks, in which a tick waits for its clusters
LEAVES_S = 30.0  # how long a poll at work is waited for at the end


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
            go_on(*(ticker, settings, clusters, until_s), asked=options.cluster, clock=clock, stop=stop, health=health)
    except AddressError as error:
        ticker.close()
        print(f"controller: {error}", file=sys.stderr)
        return EXIT_USAGE
    return 0


def go_on(
    ticker: Ticker,
    settings: Settings,
    clusters: Sequence[str],
    until_s: float,
    *,
    asked: Sequence[str] | None,
    clock: Callable[[], float],
    stop: threading.Event,
    health: ControllerHealth,
) -> None:
    """Make ticks until a time, with parts that are made anew where the settings ask for it.

    ``asked`` are the clusters that the command line names; times are epoch seconds.
    """
    cleaned_s = -math.inf

    def take(summary: TickSummary) -> str:
        nonlocal cleaned_s
        if clock() - cleaned_s >= HOUR_S:
            cleaned_s = clock()
            delete_ended(ticker.settings.paths.lake, cleaned_s)
        health.note_tick(summary, clock(), ticker.settings.health.controller_late_s)
        show(summary, clock())
        return find_restart(settings, ticker.settings, asked)[0]

    while why := run_ticks(ticker, settings, clusters, until_s, clock=clock, stop=stop, take=take):
        log.warning("%s", why)
        clusters = find_restart(settings, ticker.settings, asked)[1]
        settings = ticker.settings
        ticker = start(settings, clusters, clock)


def find_restart(made_with: Settings, now: Settings, asked: Sequence[str] | None) -> tuple[str, list[str]]:
    """Return why all begins anew, and with which clusters; empty while it goes on, stopped where it may not."""
    why = explain_changes(made_with, now)
    try:
        clusters = choose_clusters(now, asked) if why else []
    except SettingsError as error:  # what is controlled stays stopped
        log.error("%s", error)
        clusters = []
    return (why if clusters else "", clusters)


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


def warm_up(ticker: Ticker, settings: Settings, clusters: Sequence[str], now_s: float) -> int:
    """Hand over what was polled before; returns the number of replies."""
    as_of = datetime.fromtimestamp(now_s, UTC)
    result = 0
    for cluster in clusters:
        try:
            records = read_recent(settings, cluster, as_of)
        except Exception:  # the files of a cluster must not keep the others, or requests in flight, from being followed
            log.exception("%s: what was polled before is not read", cluster)
            continue
        ticker.add_records(records)
        result += len(records)
    return result


def poll_once(ticker: Ticker, settings: Settings, clusters: Sequence[str]) -> None:
    """Poll the clusters and hand over what they reply; one that does not is a line in the log."""
    collect_for(
        _only(settings, clusters), 0.0, on_records=lambda _, records: ticker.add_records(records), may_be_empty=True
    )


def _only(settings: Settings, clusters: Sequence[str]) -> Settings:
    return settings.model_copy(update={"clusters": {name: settings.cluster(name) for name in clusters}})


def run_ticks(
    ticker: Ticker,
    settings: Settings,
    clusters: Sequence[str],
    until_s: float,
    *,
    clock: Callable[[], float],
    stop: threading.Event,
    take: Callable[[TickSummary], str],
) -> str:
    """Poll the clusters and make a tick every ``apply.tick_s`` until a time, or until ``stop`` is set.

    A tick that fails is a line in the log: the next one starts from what the clusters say. A cluster that takes longer
    than half of a tick goes on beside the next ones. Times are epoch seconds.

    Returns:
        why all has to begin anew, as ``take`` says of a tick; empty at the end.
    """
    polled, ended = _only(settings, clusters), threading.Event()

    def collect() -> None:
        collect_for(polled, math.inf, clock, stop=ended, on_records=lambda _, records: ticker.add_records(records))

    collector = threading.Thread(target=collect, name="collector", daemon=True)
    collector.start()
    try:
        while not stop.is_set() and clock() < until_s:
            try:
                if why := take(ticker.tick(TICK_SHARE * settings.apply.tick_s)):
                    return why
            except Exception:
                log.exception("a tick failed; the next one starts afresh")
            tick_s = settings.apply.tick_s
            next_s = min(until_s, tick_s * (math.floor(clock() / tick_s) + 1))
            stop.wait(max(0.0, next_s - clock()))
    finally:
        ended.set()
        collector.join(LEAVES_S)
        ticker.close()
    return ""
