"""The truth: capacities by more load than a job can process, and the records that each vertex gets by ample slots."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.nexmark.counters import FETCHED_AFTER_S, Flow, compare, read_counters
from benchmarks.nexmark.experiment import FLOOD, HIGH, LOW, MOST, Truth
from lab.local_flink.job_client import JobClient
from lab.local_flink.nexmark import NexmarkQuery, submit_query
from tools.record_queries import rescale, wait_until_running

_SETTLES = 0.4  # share of a measurement's time that passes before its first reading
_WINDOW_S = 10.0  # of the queries' windows: their aggregates are sent at its end, so readings are whole windows apart
_SATURATED = 0.9  # busy share of a vertex that can do no more


def find_truth(
    client: JobClient,
    folder: Path,
    jar_id: str,
    queries: list[NexmarkQuery],
    *,
    seconds: float,
    say: Callable[[str], None],
) -> dict[str, Truth]:
    """Measure all queries at the same time; returns query -> truth."""
    result = {query.name: Truth() for query in queries}
    each_s = seconds / (MOST + 3)
    ids = _submit(client, folder, jar_id, queries, {query.name: ((0.0, FLOOD),) for query in queries})
    time.sleep(each_s)  # the first one is as warm as those that follow
    for parallelism in range(1, MOST + 1):
        _rescale_all(client, ids, queries, parallelism)
        flows = _measure(client, ids, each_s)
        for query in queries:
            _note_capacity(result[query.name], flows[query.name], query, parallelism)
            truth = result[query.name]
            figures = f"{truth.job_per_s[parallelism]:.0f} events/s, {truth.capacity_per_s[parallelism]:.0f} records/s"
            say(f"{query.name}: {parallelism} of `{truth.names[truth.costly]}` do {figures}")
    _cancel(client, ids)
    for load in (LOW, HIGH):
        ids = _submit(client, folder, jar_id, queries, {query.name: ((0.0, load),) for query in queries})
        _rescale_all(client, ids, queries, MOST)
        flows = _measure(client, ids, each_s)
        for query in queries:
            result[query.name].inflow_per_s[load] = {
                vertex: flow.in_per_s for vertex, flow in flows[query.name].items()
            }
            result[query.name].busy[load] = {vertex: flow.busy for vertex, flow in flows[query.name].items()}
        _cancel(client, ids)
    return result


def _submit(
    client: JobClient,
    folder: Path,
    jar_id: str,
    queries: list[NexmarkQuery],
    loads: Mapping[str, tuple[tuple[float, float], ...]],
) -> dict[str, str]:
    ids = dict[str, str]()
    for query in queries:
        rates = [(round(at), query.unit_per_s * times) for at, times in loads[query.name]]
        trace = (*rates, (rates[-1][0] + 7200, rates[-1][1]))
        ids[query.name] = submit_query(client, folder, query.options(trace, f"{query.name}-truth"), jar_id=jar_id)
    wait_until_running(client, list(ids.values()))
    return ids


def _rescale_all(client: JobClient, ids: Mapping[str, str], queries: list[NexmarkQuery], parallelism: int) -> None:
    for query in queries:
        for prefix in query.costly:
            rescale(client, ids[query.name], prefix, parallelism)
    for job_id in ids.values():
        bounds = client.upper_bounds(job_id)
        names = {vertex["id"]: vertex["name"] for vertex in client.job(job_id)["vertices"]}
        client.wait_for_parallelism(job_id, {names[vertex]: bound for vertex, bound in bounds.items()}, timeout_s=120)


def _measure(client: JobClient, ids: Mapping[str, str], seconds: float) -> dict[str, dict[str, Flow]]:
    time.sleep(_SETTLES * seconds)
    before = read_counters(client, list(ids.values()))
    windows = max(1.0, (1 - _SETTLES) * seconds // _WINDOW_S)
    time.sleep(max(0.0, windows * _WINDOW_S - FETCHED_AFTER_S))
    after = read_counters(client, list(ids.values()))
    return {name: compare(before, after, job_id) for name, job_id in ids.items()}


def _note_capacity(truth: Truth, flows: Mapping[str, Flow], query: NexmarkQuery, parallelism: int) -> None:
    truth.names = {vertex: flow.name for vertex, flow in flows.items()}
    if not truth.costly:
        costly = [vertex for vertex, flow in flows.items() if flow.name.startswith(query.costly[0])]
        truth.costly = max(costly, key=lambda vertex: flows[vertex].busy)
    flow = flows[truth.costly]
    source = next(one for one in flows.values() if one.name.startswith("Source"))
    truth.saturated[parallelism] = flow.busy > _SATURATED
    truth.capacity_per_s[parallelism] = flow.in_per_s / (1.0 if truth.saturated[parallelism] else flow.busy)
    truth.job_per_s[parallelism] = source.in_per_s


def _cancel(client: JobClient, ids: Mapping[str, str]) -> None:
    for job_id in ids.values():
        client.cancel(job_id)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and any(client.job(one)["state"] != "CANCELED" for one in ids.values()):
        time.sleep(0.5)
