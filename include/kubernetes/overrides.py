"""The map of parallelism overrides in a resource, and the patch that replaces it.

The operator rescales in place only when no vertex that was overridden before is left out, so the map is written whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.kubernetes.configuration import find_path, flatten, nest

OVERRIDES = "pipeline.jobvertex-parallelism-overrides"
FIELD_MANAGER = "tidewise"


class OverridesError(ValueError):
    """The map in a resource cannot be read, or a new one would not hold what the present one holds."""


def read_overrides(configuration: object) -> dict[str, int]:
    """Return vertex id -> parallelism from ``spec.flinkConfiguration``; empty without a map.

    Raises:
        OverridesError: the map is written in a way that Flink does not read either.
    """
    reported = flatten(configuration)
    below = {
        key.removeprefix(f"{OVERRIDES}."): text for key, text in reported.items() if key.startswith(f"{OVERRIDES}.")
    }
    text = reported.get(OVERRIDES, "")
    pairs = [*below.items(), *(_pair(entry) for entry in text.split(",") if entry.strip())]
    try:
        return {vertex: int(count) for vertex, count in pairs}
    except ValueError as error:
        raise OverridesError(f"{OVERRIDES} = {text[:200]!r} is no map of parallelism") from error


def write_overrides(parallelism: Mapping[str, int], present: str | None) -> str:
    """Return the map as text, another one than ``present`` even where it says the same.

    The operator compares texts: the same one is no change for it, although Flink may have lost what it says
    (FLINK-38770). With quotes around its entries a map says the same.
    """
    entries = [f"{vertex}:{count}" for vertex, count in sorted(parallelism.items())]
    plain = ",".join(entries)
    return plain if plain != present else ",".join(f"'{entry}'" for entry in entries)


def form_patch(
    configuration: object, parallelism: Mapping[str, int], resource_version: str, vertices: frozenset[str]
) -> dict[str, Any]:
    """Return the merge-patch that replaces the whole map, and nothing if the resource has changed meanwhile.

    ``configuration`` is ``spec.flinkConfiguration`` as it is; to an old ``resource_version`` the API server answers
    409.

    Raises:
        OverridesError: a vertex of the job that is overridden now would be left out: a full upgrade of the job.
    """
    excluded = sorted((set(read_overrides(configuration)) & vertices) - set(parallelism))
    if excluded:
        raise OverridesError(f"vertices that are overridden now would be left out: {', '.join(excluded)}")
    present = flatten(configuration).get(OVERRIDES)
    return form_configuration_patch(configuration, {OVERRIDES: write_overrides(parallelism, present)}, resource_version)


def form_configuration_patch(
    configuration: object, values: Mapping[str, str | None], resource_version: str
) -> dict[str, Any]:
    """Return the merge-patch that sets keys of ``spec.flinkConfiguration`` where they stand; None removes one."""
    changed: dict[str, Any] = {}
    for key, value in values.items():
        _merge(changed, nest(find_path(configuration, key), value))
    return {"metadata": {"resourceVersion": resource_version}, "spec": {"flinkConfiguration": changed}}


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _pair(entry: str) -> tuple[str, str]:
    text = entry.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    vertex, colon, count = text.partition(":")
    return vertex.strip(), count.strip() if colon else ""
