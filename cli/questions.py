"""What the commands that answer questions share: where and when."""

from __future__ import annotations

import argparse
import os

from cli.arguments import CommandParser, moment
from cli.command import add_out, read_settings
from fleet.fleet_reader import FleetReader
from include.settings import Settings


def add_common(parser: CommandParser, at: str = "the time that is shown; default: now") -> None:
    """Add the options that every question has."""
    parser.add_argument("--at", type=moment, help=f"{at}; as 2026-11-20T18:00:00Z, or 03:00 for the last one")
    parser.add_argument("--json", action="store_true", help="the same as JSON, with a schema that stays")
    add_out(parser)


def cluster_and_job(text: str) -> str:
    """Read ``cluster/job``."""
    cluster, slash, job = text.partition("/")
    if not (cluster and slash and job):
        raise argparse.ArgumentTypeError(f"expected cluster/job, such as live/checkout, not {text!r}")
    return text


def open_reader(options: argparse.Namespace) -> tuple[Settings, FleetReader]:
    """Return the settings in force and a reader of their lake."""
    settings = read_settings(options)
    return settings, FleetReader(settings, os.environ)
