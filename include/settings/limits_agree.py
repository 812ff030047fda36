"""What has to hold between the limits of the fleet, of clusters and of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from urllib.parse import urlsplit

from include.settings.clusters import Cluster
from include.settings.feeds import find_feed_fault
from include.settings.limits import FleetLimits, JobLimits
from include.settings.schedules_agree import find_schedule_contradiction

_NEAR = 0.75


def find_contradiction(fleet: FleetLimits, clusters: Mapping[str, Cluster]) -> str | None:
    """Return the first contradiction in one line, with what to write; None when all levels agree."""
    return next(_contradictions(fleet, clusters), None)


def find_misspelt_cluster(keys: Mapping[str, Iterable[str]], clusters: Iterable[str]) -> str | None:
    """Return the first key for a cluster that the settings do not have and that is nearly one of them, in one line.

    Other clusters may be known from their raw files alone. A key of the settings has clusters or ``cluster/job`` below
    it.
    """
    known = {name.lower(): name for name in clusters}
    for key, written in keys.items():
        for one in written:
            cluster = one.partition("/")[0]
            near = get_close_matches(cluster.lower(), known, n=1, cutoff=_NEAR)
            if near and cluster not in known.values():
                right = known[near[0]] + one.removeprefix(cluster)
                return (
                    f'{key}."{one}": there is no cluster "{cluster}"; write {key}."{right}", or [clusters.{cluster}] '
                    "as well"
                )
    return None


def _find_doubles(clusters: Mapping[str, Cluster]) -> Iterator[str]:
    """Yield what two clusters share that is of one alone: they would be controlled, or counted, twice."""
    known: dict[tuple[object, ...], str] = {}
    for name, cluster in clusters.items():
        server = cluster.prometheus
        # A server of metrics may have many clusters, told apart by matchers and names of metrics.
        of_one = {
            "rest_url": (cluster.rest_url and _normalize_url(cluster.rest_url),),
            "prometheus": (
                *(server.url and _normalize_url(server.url), server.prefix, server.tenant),
                *(frozenset(server.matchers), server.names),
            ),
        }
        for key, value in of_one.items():
            other = known.setdefault((key, *value), name) if value[0] else name
            if other != name:
                remedy = "leave one of them out" + (", or give each its matchers" if key == "prometheus" else "")
                yield f"clusters.{other} and clusters.{name} have the same {key}, and would be one cluster; {remedy}"


def _normalize_url(url: str) -> str:
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{parts.hostname}:{port}{parts.path.rstrip('/')}"


def _contradictions(fleet: FleetLimits, clusters: Mapping[str, Cluster]) -> Iterator[str]:
    yield from _find_doubles(clusters)
    for name, cluster in clusters.items():
        yield from _check_slots(fleet, f"clusters.{name}", cluster, None)
        for job in cluster.limits.looser_jobs:
            if f"{name}/{job}" not in fleet.jobs:
                yield (
                    f'clusters.{name}.limits.looser_jobs names "{job}", which has no section; '
                    + _instead(f"{name}/{job}", fleet.jobs, 'limits.jobs."{}"', f'[limits.jobs."{name}/{job}"] as well')
                )
    for key, limits in fleet.jobs.items():
        name = key.partition("/")[0]
        if name not in clusters:
            yield f'limits.jobs."{key}": there is no cluster "{name}"; ' + _instead(
                name, clusters, "{}", f"[clusters.{name}] as well"
            )
            continue
        yield from _check_slots(fleet, f"clusters.{name}", clusters[name], (f'limits.jobs."{key}"', limits))
        own = clusters[name]
        if limits.operators and own.actuator == "kubernetes" and own.kubernetes.mode == "guide":
            yield (
                f'limits.jobs."{key}".operators cannot be kept where clusters.{name}.kubernetes.mode = "guide" sets '
                "one parallelism for all operators; remove it, or write slots_min and slots_max"
            )
        if limits.mode in {"approve", "auto"} and clusters[name].rest_url is None:
            yield (
                f'limits.jobs."{key}".mode = "{limits.mode}" needs clusters.{name}.rest_url, to which steps are sent; '
                f"write rest_url as well"
            )
    if fault := find_feed_fault(fleet.jobs):
        yield fault
    highest = {key: _find_highest(fleet, clusters, key) for key in fleet.jobs}
    budgets = {name: one.slots_total for name, one in clusters.items() if one.slots_total is not None}
    contradiction = find_schedule_contradiction(fleet.jobs, highest, budgets)
    if contradiction:
        yield contradiction


def _find_highest(fleet: FleetLimits, clusters: Mapping[str, Cluster], job: str) -> tuple[str, int]:
    """Return the key and the slots of the strictest upper bound of a job whose cluster is known."""
    name = job.partition("/")[0]
    of_all = {"limits.slots_max": fleet.slots_max, f"clusters.{name}.slots_max": clusters[name].slots_max}
    bounds = {**of_all, f'limits.jobs."{job}".slots_max': fleet.jobs[job].slots_max}
    return min(((key, one) for key, one in bounds.items() if one is not None), key=lambda pair: pair[1])


def _check_slots(fleet: FleetLimits, where: str, cluster: Cluster, job: tuple[str, JobLimits] | None) -> Iterator[str]:
    """Yield what lower bounds of one level and upper bounds of another leave no room for."""
    lowest = {"limits.slots_min": fleet.slots_min, f"{where}.limits.slots_min": cluster.limits.slots_min}
    highest = {"limits.slots_max": fleet.slots_max, f"{where}.slots_max": cluster.slots_max}
    if job is not None:
        lowest[f"{job[0]}.slots_min"] = job[1].slots_min
        highest[f"{job[0]}.slots_max"] = job[1].slots_max
    low_key, low = max(((key, one or 1) for key, one in lowest.items()), key=lambda pair: pair[1])
    bounds = [(key, one) for key, one in highest.items() if one is not None]
    high_key, high = min(bounds, key=lambda pair: pair[1])
    if low > high:
        yield f"{low_key} = {low} is above {high_key} = {high}; write {low_key} = {high} or less"
    elif job is not None and job[1].pin is not None:
        yield from _check_pin(f"{job[0]}.pin", job[1].pin, (low_key, low), (high_key, high))


def _check_pin(key: str, pin: int | Mapping[str, int], low: tuple[str, int], high: tuple[str, int]) -> Iterator[str]:
    largest = pin if isinstance(pin, int) else max(pin.values())
    if largest > high[1]:
        yield f"{key} = {largest} is above {high[0]} = {high[1]}; write {high[1]} or less"
    if isinstance(pin, int) and pin < low[1]:
        yield f"{key} = {pin} is below {low[0]} = {low[1]}; write {low[1]} or more"


def _instead(name: str, known: Mapping[str, object], form: str, otherwise: str) -> str:
    near = get_close_matches(name, known, n=1)
    return f"write {form.format(near[0])}" if near else f"write {otherwise}"
