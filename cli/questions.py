"""What the commands that answer questions share: where and when, how times are shown, and what a failure says."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from deltalake.exceptions import DeltaError

from cli.arguments import EXIT_USAGE, CommandParser, UsageError, moment
from cli.embedded import below
from cli.known_jobs import UnknownNameError
from fleet.facts import FleetFacts
from fleet.fleet_reader import FleetReader
from include.control.small_objects import StoreUnreadableError
from include.settings import PROJECT, Settings, SettingsError, load_settings
from include.spark.submission import anchor_paths

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_HOUR_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)Z?")


def add_common(parser: CommandParser, at: str = "the time that is shown; default: now") -> None:
    """Add the options that every question has."""
    parser.add_argument("--at", type=moment_or_hour, help=f"{at}; as 2026-11-20T18:00:00Z, or 03:00 for the last one")
    parser.add_argument("--json", action="store_true", help="the same as JSON, with a schema that stays")
    parser.add_argument("--out", type=Path, help=f"folder of make run, such as {PROJECT / 'out'}; default: settings")


def moment_or_hour(text: str) -> datetime | str:
    """Read a time, or leave an hour of the day as text until the clock is known."""
    return text if _HOUR_OF_DAY.fullmatch(text) else moment(text)


def resolve_time(given: datetime | str | None, now_s: float) -> datetime:
    """Return the time that was meant: of an hour of the day (UTC) the last one."""
    now = datetime.fromtimestamp(now_s, UTC)
    if given is None:
        return now
    if isinstance(given, datetime):
        return given
    hour, minute = map(int, given.removesuffix("Z").split(":"))
    result = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return result if result <= now else result - timedelta(days=1)


def cluster_and_job(text: str) -> str:
    """Read ``cluster/job``."""
    cluster, slash, job = text.partition("/")
    if not (cluster and slash and job):
        raise argparse.ArgumentTypeError(f"expected cluster/job, such as live/checkout, not {text!r}")
    return text


def open_reader() -> tuple[Settings, FleetReader]:
    """Return the settings in force and a reader of their lake."""
    settings = anchor_paths(load_settings())
    return settings, FleetReader(settings, os.environ)


def answer(name: str, options: argparse.Namespace, run: Callable[[argparse.Namespace, float], int]) -> int:
    """Run a command; a failure is one line that says what to do; the exit code is 2 for a wrong question."""
    if options.out is not None:
        os.environ.update(below(options.out))
    try:
        return run(options, time.time())
    except (UsageError, UnknownNameError) as error:
        print(f"{name}: {visible(str(error))}", file=sys.stderr)
        return EXIT_USAGE
    except SettingsError as error:
        print(f"{name}: {error}", file=sys.stderr)
    except StoreUnreadableError as error:
        print(f"{name}: {visible(str(error))}", file=sys.stderr)
    except (DeltaError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            return 0
        reported = str(error).partition("\n")[0] or type(error).__name__
        print(f"{name}: a table cannot be read: {visible(reported)} (make doctor checks the lake)", file=sys.stderr)
    return 1


def visible(text: str) -> str:
    """Return a text without what a terminal would obey."""
    return _CONTROL.sub("?", text)


def show_time(at_s: float | None, now_s: float) -> str:
    """Return a time as a person reads it: today's without its date."""
    if at_s is None:
        return "-"
    at, now = datetime.fromtimestamp(at_s, UTC), datetime.fromtimestamp(now_s, UTC)
    return f"{at:%H:%M}Z" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M}Z"


def show_rate(value: float | None) -> str:
    """Return records per second.

    >>> show_rate(102_400.0), show_rate(12.34), show_rate(None)
    ('102k/s', '12.3/s', '-')
    """
    if value is None:
        return "-"
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}/s"
    return f"{value:.3g}/s"


def find_newest(facts: FleetFacts) -> float | None:
    """Return when anything of the fleet was last written down, epoch seconds; None for an empty lake."""
    times = [one.plan_as_of_s for one in facts.clusters]
    times += [one.last_decision.at_s for one in facts.jobs if one.last_decision is not None]
    return max((at_s for at_s in times if at_s is not None), default=None)


def print_lines(lines: Sequence[str]) -> None:
    """Print lines, each without what a terminal would obey."""
    print("\n".join(visible(line) for line in lines))
