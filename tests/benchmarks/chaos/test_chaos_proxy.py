"""The proxy of `make chaos` does to requests what it says, and records them as they came."""

from __future__ import annotations

import json
import random
import time

import pytest
from flink_server import FlinkServer
from flink_server import serving as serving_flink

from benchmarks.chaos import wire_troubles
from benchmarks.chaos.proxy import serving
from include.flink.faults import FlinkRefusedError, FlinkUnreachableError, RedirectedError
from lab.local_flink.job_client import JobClient

JOB = "a" * 32
PATH = f"/jobs/{JOB}/resource-requirements"
BOUNDS = {"b" * 32: 3}


class Cluster(FlinkServer):
    """Accepts everything, and keeps what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[object] = []

    def answer(self, request) -> None:
        if request.method == "PUT":
            self.bodies.append(json.loads(request.body))
        request.write_json({"path": request.handler.path})


@pytest.fixture
def flink():
    cluster = Cluster()
    with serving_flink(cluster):
        yield cluster


@pytest.fixture
def proxy(flink):
    with serving(flink.url) as proxy:
        yield proxy


@pytest.fixture
def client(proxy):
    made = JobClient(proxy.url, retries=0, read_timeout_s=5.0)
    yield made
    made.close()


def test_it_hands_on_and_records(flink, proxy, client):
    assert client.transport.get_json("/overview?x=1") == {"path": "/overview?x=1"}
    began_s = time.time()
    client.put_resource_requirements(JOB, BOUNDS)
    (put,) = proxy.puts
    assert (put.job_id, put.bounds, put.statuses, put.trouble) == (JOB, BOUNDS, [200], "")
    assert began_s <= put.received_s <= put.forwarded_s[0] <= put.answered_s <= time.time()
    assert flink.bodies == [{"b" * 32: {"parallelism": {"lowerBound": 1, "upperBound": 3}}}]
    assert proxy.hits == 0


@pytest.mark.parametrize(
    ("trouble", "arrives", "error"),
    [
        (wire_troubles.drop, 0, FlinkUnreachableError),
        (wire_troubles.reply_500, 0, FlinkRefusedError),
        (wire_troubles.reply_html, 0, FlinkRefusedError),
        (wire_troubles.reply_garbage, 0, FlinkRefusedError),
        (wire_troubles.redirect, 0, RedirectedError),
        (wire_troubles.fake_acceptance, 0, None),
        (wire_troubles.lose_reply, 1, FlinkUnreachableError),
        (wire_troubles.cut_reply, 1, FlinkUnreachableError),
        (wire_troubles.accept_with_500, 1, FlinkRefusedError),
        (wire_troubles.duplicate, 2, None),
        (wire_troubles.delay_by(0.3), 1, None),
    ],
)
def test_troubles_of_a_request(flink, proxy, client, trouble, arrives, error):
    with proxy.troubling_put(JOB, trouble):
        if error is None:
            client.put_resource_requirements(JOB, BOUNDS)
        else:
            with pytest.raises(error):
                client.put_resource_requirements(JOB, BOUNDS)
        client.put_resource_requirements("c" * 32, BOUNDS)  # another job's is handed on
    assert [len(put.forwarded_s) for put in proxy.puts] == [arrives, 1]
    assert len(flink.bodies) == arrives + 1
    assert proxy.puts[0].trouble == trouble.__name__
    assert proxy.hits == 1
    client.put_resource_requirements(JOB, BOUNDS)
    assert len(flink.bodies) == arrives + 2


def test_troubles_of_replies_meet_a_share_of_them(proxy, client):
    with proxy.troubling_replies(wire_troubles.reply_html, 0.5, random.Random(1)):
        result = [client.transport.get("/jobs/overview").body.startswith("<html>") for _ in range(40)]
        client.put_resource_requirements(JOB, BOUNDS)  # they do not meet requests
    assert 8 < sum(result) == proxy.hits < 32
    assert client.transport.get_json("/overview") == {"path": "/overview"}


def test_a_cluster_that_is_gone_is_a_closed_connection(flink, proxy, client):
    flink.answer = lambda request: request.handler.connection.close()
    with pytest.raises(FlinkUnreachableError):
        client.overview()
