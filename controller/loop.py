"""The controller's process: polling beside ticks, until a time or a signal."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from controller.tick import Ticker, TickSummary
from controller.view.recent_files import read_recent
from include.metric_sources.collection import collect_for
from include.settings import Settings

TICK_SHARE = 0.5  # of the time between two ticks, in which a tick waits for its clusters
LEAVES_S = 30.0  # how long a poll at work is waited for at the end
log = logging.getLogger(__name__)


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
    on_tick: Callable[[TickSummary], None],
    explain_anew: Callable[[], str] = str,
) -> str:
    """Poll the clusters and make a tick every ``apply.tick_s`` until a time, or until ``stop`` is set.

    A tick that fails is a line in the log: the next one starts from what the clusters say. A cluster that takes longer
    than half of a tick goes on beside the next ones.

    Args:
        ticker: makes the ticks.
        settings: that it was made with.
        clusters: that are polled.
        until_s: epoch seconds.
        clock: epoch seconds.
        stop: set to end early.
        on_tick: takes what each tick did.
        explain_anew: returns why all has to begin anew with other settings; empty while it goes on.

    Returns:
        why it has to begin anew; empty at the end.
    """
    polled, ended = _only(settings, clusters), threading.Event()

    def collect() -> None:
        collect_for(polled, math.inf, clock, stop=ended, on_records=lambda _, records: ticker.add_records(records))

    collector = threading.Thread(target=collect, name="collector", daemon=True)
    collector.start()
    try:
        while not stop.is_set() and clock() < until_s:
            try:
                on_tick(ticker.tick(TICK_SHARE * settings.apply.tick_s))
                if why := explain_anew():
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
