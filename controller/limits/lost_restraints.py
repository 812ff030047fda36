"""What a settings file says no more that restrained something: it may have been cut, or somebody removed it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from include.settings import Settings, settings_file

OF_SETTINGS = "settings"
"""Cluster and job of the object by which a person says that the settings mean what they say (``tidewise lift``)."""

_OF_CLUSTER = ("slots_max", "slots_total", "actuator")


def find_lost_restraints(before: Settings, after: Settings) -> list[str]:
    """Return the keys that an earlier version sets and a later one leaves out, of what limits something.

    To set a key to its default is to say it. A cluster that is named no more is stopped, so nothing of it is lost.
    """
    return sorted(set(_list_restraints(before, after)) - set(_list_restraints(after, after)))


def _list_restraints(settings: Settings, named: Settings) -> Iterator[str]:
    for name in ("limits", "apply", "approval", "roles"):
        yield from _list_set(getattr(settings, name), name)
    for name in settings.clusters.keys() & named.clusters.keys():
        cluster = settings.clusters[name]
        yield from _list_set(cluster.limits, f"clusters.{name}.limits")
        yield from (f"clusters.{name}.{key}" for key in _OF_CLUSTER if key in cluster.model_fields_set)


def _list_set(value: object, path: str) -> Iterator[str]:
    """Return the paths of all keys that are set."""
    if isinstance(value, BaseModel):
        for key in value.model_fields_set:
            yield from _list_set(getattr(value, key), f"{path}.{key}")
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _list_set(one, f'{path}."{key}"')
    elif value is not None:
        yield path


def name_confirmation() -> str:
    """Return the id of the settings file as it is; empty where there is none."""
    try:
        return f"settings-{hashlib.sha256(settings_file().read_bytes()).hexdigest()[:16]}"
    except OSError:
        return ""
