"""The source of a process: settings from its environment, read again when their file changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from include.settings import load_settings, settings_file
from include.settings.file_owner import login_of
from include.spark.submission import anchor_paths
from page.source import FleetSource, SettingsOrigin


def open_source(variables: Mapping[str, str], clock: Callable[[], float]) -> FleetSource:
    """Return what the page reads with the settings in force."""
    return FleetSource(lambda: anchor_paths(load_settings()), read_origin, variables, clock)


def read_origin() -> SettingsOrigin | None:
    """Return which file the settings come from, and who wrote it last; None without one: the defaults are in force."""
    file = settings_file()
    try:
        status = file.stat()
    except OSError:
        return None
    return SettingsOrigin(str(file), login_of(status.st_uid), status.st_mtime, status.st_size)
