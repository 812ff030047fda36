"""Checks of the settings: every key at fault is a finding."""

from __future__ import annotations

from pathlib import Path

from cli.doctor.findings import Finding, error, ok, warning
from include.settings import Settings, SettingsError, load_settings, settings_file

PART = "settings"


def read_settings() -> tuple[Settings | None, list[Finding]]:
    """Return the settings, None when they are refused, and what is to be said of them."""
    path = settings_file()
    try:
        settings = load_settings()
    except SettingsError as refused:
        return None, [_describe_fault(fault) for fault in refused.faults or (str(refused),)]
    return settings, [_describe_file(path), check_clusters(settings), ok(PART, "paths.raw", settings.paths.raw)]


def _describe_fault(fault: str) -> Finding:
    text, _, remedy = fault.partition("; ")
    return error(PART, "keys", text, f"{remedy or 'docs/settings.md lists every key'}")


def _describe_file(path: Path) -> Finding:
    if path.is_file():
        return ok(PART, "keys", f"{path} is accepted")
    return warning(PART, "keys", f"{path} is not there: everything has its default", "run `tidewise init`")


def check_clusters(settings: Settings) -> Finding:
    """Check that there is a cluster to observe."""
    live = sorted(name for name, one in settings.clusters.items() if one.rest_url is not None)
    if not live:
        return warning(
            PART,
            "clusters",
            "no cluster has a rest_url: only files can be read",
            "run `tidewise init`, or write rest_url under [clusters.<name>]",
        )
    return ok(PART, "clusters", f"{len(live)} with an address: {', '.join(live)}")
