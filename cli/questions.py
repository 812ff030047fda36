"""What the commands that answer questions share: where and when, how times are shown, and what a failure says."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from datetime import datetime

from deltalake.exceptions import DeltaError

from cli.arguments import EXIT_USAGE, CommandParser, UsageError, moment
from cli.embedded import below
from cli.known_jobs import UnknownNameError
from fleet.fleet_reader import FleetReader
from fleet.moments import is_hour_of_day
from include.control.small_objects import StoreUnreadableError
from include.place import place
from include.settings import PROJECT, Settings, SettingsError, load_settings
from include.short_names import visible
from include.spark.submission import anchor_paths


def add_common(parser: CommandParser, at: str = "the time that is shown; default: now") -> None:
    """Add the options that every question has."""
    parser.add_argument(
        "--at", type=moment_or_hour, help=f"{at}; as 2026-11-20T18:00:00Z, or 03:00 (03:00:15) for the last one"
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON, with a schema that stays")
    parser.add_argument("--out", type=place, help=f"folder of make run, such as {PROJECT / 'out'}; default: settings")


def moment_or_hour(text: str) -> datetime | str:
    """Read a time, or leave an hour of the day as text until the clock is known."""
    return text if is_hour_of_day(text) else moment(text)


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
