"""What a job can do: capacity by parallelism under more load than it can process, its graph, and its downtime."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from sklearn.isotonic import IsotonicRegression

from benchmarks.live.live_job import JOBS, SLOTS, set_cluster
from benchmarks.nexmark.counters import Flow, compare, read_counters
from include.atomic_write import write_json
from lab.local_flink.cluster import LocalCluster
from lab.local_flink.job_client import JobClient
from tools.record_queries import rescale, wait_until_running

PARALLELISMS = tuple(range(SLOTS, 0, -1))
"""Each one: between those that divide the key groups evenly a job carries less than what lies on a line."""
_FLOOD_UNITS = 3.3 * SLOTS  # a subtask can do about two units
_WARMS_UP_S, _SETTLES_S, _MEASURES_S = 60.0, 12.0, 20.0
_REPLIES_S = 60.0


@dataclass(frozen=True, slots=True)
class Vertex:
    """A vertex of a job.

    Attributes:
        name, upstream: as Flink names them; an upstream stands there once for each exchange.
        in_per_event: records into it per event of the source.
        per_subtask_per_s: records/s that one subtask can process; infinite where it was hardly busy.
    """

    name: str
    upstream: tuple[str, ...]
    in_per_event: float
    per_subtask_per_s: float


@dataclass(frozen=True)
class Calibration:
    """What was measured of a job.

    Attributes:
        query: its name.
        costly: name of the vertex that limits it.
        vertices: in topological order.
        events_per_s: parallelism of the costly vertex -> events/s of the job at saturation.
        downtime_s: median of the rescales.
    """

    query: str
    costly: str
    vertices: tuple[Vertex, ...]
    events_per_s: Mapping[int, float]
    downtime_s: float

    def capacity_per_s(self, parallelism: int) -> float:
        """Return events/s at a parallelism, interpolated between those measured.

        Hot keys leave some tenths between two measurements of the same parallelism. Where more subtasks carried less,
        the rising curve that is nearest to what was measured is taken (isotonic regression).
        """
        return float(np.interp(parallelism, [0, *sorted(self.events_per_s)], [0.0, *self._rising_per_s]))

    @cached_property
    def _rising_per_s(self) -> list[float]:
        known = sorted(self.events_per_s)
        return list(IsotonicRegression().fit_transform(known, [self.events_per_s[one] for one in known]))

    def find_parallelism(self, events_per_s: float, utilisation: float) -> int:
        """Return the least parallelism that carries a load at a utilisation, at most all slots."""
        enough = (p for p in range(1, SLOTS) if utilisation * self.capacity_per_s(p) >= events_per_s)
        return next(enough, SLOTS)


def find_known(path: Path) -> Calibration | None:
    """Return what was measured so far; None where nothing was."""
    return read_calibration(path) if path.is_file() else None


def read_calibration(path: Path) -> Calibration:
    """Read what :func:`calibrate` wrote."""
    values = json.loads(path.read_text(encoding="utf-8"))
    vertices = tuple(Vertex(**{**one, "upstream": tuple(one["upstream"])}) for one in values.pop("vertices"))
    events = {int(key): float(one) for key, one in values.pop("events_per_s").items()}
    return Calibration(vertices=vertices, events_per_s=events, **values)


def list_unmeasured(known: Calibration | None) -> list[int]:
    """Return the parallelisms that are still to be measured, in this order."""
    return [one for one in PARALLELISMS if known is None or one not in known.events_per_s]


def calibrate(
    name: str, known: Calibration | None, folder: Path, target: Path, say: Callable[[str], None]
) -> Calibration:
    """Measure a job on a cluster of its own and write the result.

    Args:
        name: of the job.
        known: what was measured before, which stays; the load of runs is scaled by it.
        folder: of the cluster.
        target: JSON file.
        say: prints a line.
    """
    live, missing = JOBS[name], list_unmeasured(known)
    flood = _FLOOD_UNITS * live.unit_per_s
    with LocalCluster(folder, set_cluster(is_short=True), ready_timeout_s=180.0) as cluster:
        client = JobClient(cluster.rest_url, read_timeout_s=_REPLIES_S)
        # One subtask of each other vertex: the buffers of more exchanges would take up the flood while it is measured.
        job_id = live.submit(client, cluster.work_dir, ((0, flood), (86_400, flood)), 1)
        wait_until_running(client, [job_id])
        _rescale(client, job_id, live.costly, missing[0])
        time.sleep(_WARMS_UP_S)
        events, downtimes, flows = dict[int, float](), list[float](), dict[str, Flow]()
        for parallelism in missing:
            if parallelism < missing[0]:
                downtimes.append(_rescale(client, job_id, live.costly, parallelism))
            time.sleep(_SETTLES_S)
            before = read_counters(client, [job_id])
            time.sleep(_MEASURES_S)
            shown = compare(before, read_counters(client, [job_id]), job_id)
            flows = flows or shown  # of the most slots
            source = next(flow for flow in shown.values() if flow.name.startswith("Source"))
            events[parallelism] = source.in_per_s
            say(f"{name}: {parallelism} of `{live.costly}` carry {source.in_per_s:.0f} events/s")
        vertices, costly = _describe(client, job_id, flows, live.costly)
    if known is not None:
        result = replace(known, events_per_s={**events, **known.events_per_s})
    else:
        result = Calibration(name, costly, vertices, events, float(np.median(downtimes)))
    write_json(target, asdict(result))
    return result


def _rescale(client: JobClient, job_id: str, prefix: str, parallelism: int) -> float:
    """Rescale and return for how long the job was down, seconds."""
    bounds = rescale(client, job_id, prefix, parallelism)
    names = {vertex["id"]: vertex["name"] for vertex in client.job(job_id)["vertices"]}
    went_down_s, deadline_s = 0.0, time.monotonic() + 120
    while time.monotonic() < deadline_s:
        running = client.running_parallelism(job_id)
        if not running and not went_down_s:
            went_down_s = time.monotonic()
        if running == {names[vertex]: bound for vertex, bound in bounds.items()}:
            break
        time.sleep(0.2)
    return time.monotonic() - went_down_s if went_down_s else 0.0


def _describe(client: JobClient, job_id: str, flows: Mapping[str, Flow], prefix: str) -> tuple[tuple[Vertex, ...], str]:
    """Return the vertices, and which of them limits the job."""
    job = client.job(job_id)
    nodes = {node["id"]: [one["id"] for one in node.get("inputs", [])] for node in job["plan"]["nodes"]}
    source = next(flow for flow in flows.values() if flow.name.startswith("Source"))
    result = []
    for vertex in job["vertices"]:
        flow = flows[vertex["id"]]
        each = flow.in_per_s / flow.parallelism / max(flow.busy, 0.01)  # at least: what it did while hardly busy
        upstream = tuple(flows[one].name for one in nodes[vertex["id"]])
        result.append(Vertex(flow.name, upstream, flow.in_per_s / source.in_per_s, each))
    return tuple(result), next(one.name for one in result if one.name.startswith(prefix))
