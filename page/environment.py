"""The source of a process: settings from its environment, read again when their file changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from include.settings import load_settings, settings_file
from include.spark.submission import anchor_paths
from page.source import FleetSource


def open_source(variables: Mapping[str, str], clock: Callable[[], float]) -> FleetSource:
    """Return what the page reads with the settings in force."""
    return FleetSource(lambda: anchor_paths(load_settings()), _read_version, variables, clock)


def _read_version() -> object:
    try:
        status = settings_file().stat()
    except OSError:  # none: the defaults are in force
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
