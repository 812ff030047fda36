"""Settings that a controller's parts were made with: when they change, these parts have to be made anew."""

from __future__ import annotations

from include.settings import Settings

_OF_CLUSTER = (
    "rest_url",
    "actuator",
    "job_names",
    "kubernetes",
    "connection",
    "elastic",
    "window_s",
    "poll_every_s",
    "prometheus",
    "kafka",
)
_OF_ALL = ("lake", "raw")


def explain_change(made_with: Settings, now: Settings, cluster: str) -> str:
    """Return why the control of a cluster has to begin anew; empty when it goes on."""
    changed = [f"paths.{key}" for key in _OF_ALL if getattr(made_with.paths, key) != getattr(now.paths, key)]
    before, after = made_with.clusters.get(cluster), now.clusters.get(cluster)
    if after is None:
        if before is not None:
            return f"the settings name no cluster {cluster!r} any more: it is not controlled"
    elif before is None:
        changed.append(f"clusters.{cluster}")
    else:
        changed += [f"clusters.{cluster}.{key}" for key in _OF_CLUSTER if getattr(before, key) != getattr(after, key)]
    return f"{', '.join(changed)} changed: control of cluster {cluster!r} begins anew" if changed else ""


def explain_changes(made_with: Settings, now: Settings) -> str:
    """Return why something has to begin anew, of all clusters; empty when all goes on."""
    names = sorted({*made_with.clusters, *now.clusters})
    result = [explain_change(made_with, now, name) for name in names or [""]]
    return "; ".join(filter(None, result))
