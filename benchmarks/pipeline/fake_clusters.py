"""JobManagers that answer a poll's requests from memory, in a process of their own: for measuring the collection."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

from include.flink.endpoints import SOURCE_METRICS, VERTEX_METRICS


@dataclass(frozen=True, slots=True)
class FakeCluster:
    """What a cluster has and how it answers.

    Attributes:
        jobs, operators: how many jobs, and operators in each.
        delay_s: before each reply; infinite for a cluster that accepts connections and never replies.
    """

    jobs: int
    operators: int
    delay_s: float = 0.0


@contextmanager
def serve(clusters: list[FakeCluster]) -> Iterator[list[str]]:
    """Run the clusters and yield their REST addresses."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(clusters, there), daemon=True)
    process.start()
    try:
        yield [f"http://127.0.0.1:{port}" for port in here.recv()]
    finally:
        process.terminate()
        process.join()


def _run(clusters: list[FakeCluster], told: Connection) -> None:
    asyncio.run(_serve(clusters, told))


async def _serve(clusters: list[FakeCluster], told: Connection) -> None:
    loop = asyncio.get_running_loop()
    ports, servers = [], []
    for cluster in clusters:
        replier = partial(_Replier, _bodies(cluster), cluster.delay_s)
        listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        server = await loop.create_server(replier, sock=listener)
        servers.append(server)
        ports.append(listener.getsockname()[1])
    told.send(ports)
    await asyncio.Event().wait()


class _Replier(asyncio.Protocol):
    """Answers GET after GET on one connection."""

    def __init__(self, bodies: dict[str, bytes], delay_s: float) -> None:
        self._bodies, self._delay_s = bodies, delay_s
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode().split("?")[0]
            body = self._bodies.get(path, b"{}")
            reply = (
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            if self._delay_s == 0:
                self._write(reply)
            elif self._delay_s != float("inf"):
                asyncio.get_running_loop().call_later(self._delay_s, self._write, reply)

    def _write(self, reply: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(reply)


def _bodies(cluster: FakeCluster) -> dict[str, bytes]:
    """Return the body of each path, of the size that a real cluster's replies have."""
    job_ids = [f"{number:032x}" for number in range(1, cluster.jobs + 1)]
    listed = [{"jid": job_id, "name": f"job-{job_id[-4:]}", "state": "RUNNING"} for job_id in job_ids]
    result: dict[str, object] = {
        "/overview": {"slots-total": 1000, "slots-available": 500},
        "/jobs/metrics": [],
        "/jobs/overview": {"jobs": listed},
    }
    for job in listed:
        base = f"/jobs/{job['jid']}"
        vertex_ids = [f"{place:032x}" for place in range(1, cluster.operators + 1)]
        nodes = [
            {"id": vertex_id, **({"inputs": [{"id": vertex_ids[place - 1], "ship_strategy": "HASH"}]} if place else {})}
            for place, vertex_id in enumerate(vertex_ids)
        ]
        vertices = [
            {
                "id": vertex_id,
                "name": f"operator {vertex_id[-2:]}",
                "maxParallelism": 128,
                "parallelism": 4,
                "status": "RUNNING",
                "tasks": dict.fromkeys(("CREATED", "RUNNING", "FINISHED", "FAILED"), 0),
                "metrics": dict.fromkeys(("read-bytes", "write-bytes", "read-records", "write-records"), 10**9),
            }
            for vertex_id in vertex_ids
        ]
        plan = {"jid": job["jid"], "name": job["name"], "nodes": nodes}
        result[base] = {**job, "start-time": 1, "timestamps": {"RUNNING": 1}, "vertices": vertices, "plan": plan}
        result[f"{base}/plan"] = {"plan": plan}
        result[f"{base}/metrics"] = [{"id": f"metric{number}", "value": "12345"} for number in range(15)]
        result[f"{base}/checkpoints"] = {"latest": {"completed": {"status": "COMPLETED"}}, "history": ["x" * 4000]}
        result[f"{base}/exceptions"] = {"exceptionHistory": {"entries": []}}
        for place, vertex_id in enumerate(vertex_ids):
            names = [*VERTEX_METRICS, *(() if place else SOURCE_METRICS)]
            aggregates = dict.fromkeys(("min", "max", "avg", "sum", "skew"), 123.456)
            result[f"{base}/vertices/{vertex_id}/subtasks/metrics"] = [{"id": name, **aggregates} for name in names]
    return {path: json.dumps(body).encode() for path, body in result.items()}
