"""Queries against a real HTTP server on loopback that answers as Prometheus does, and as what stands before it."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from include.metric_sources.prometheus.client import (
    PrometheusClient,
    PrometheusError,
    PrometheusPartialError,
    PrometheusRefusedError,
    QueryRange,
)
from include.metric_sources.prometheus.queries import Queries
from include.settings.sources import MetricNames, Prometheus

GRID = QueryRange(1_795_000_000, 1_795_000_040, 10)


@pytest.fixture
def server():
    """An address, the requests seen, and the reply to give: (status, text)."""
    observed, reply = [], [200, "{}"]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            observed.append((self.path, dict(self.headers)))
            self.send_response(reply[0])
            self.end_headers()
            self.wfile.write(reply[1].encode())

        def log_message(self, *_):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}", observed, reply
    httpd.shutdown()
    httpd.server_close()


def matrix(*series: dict) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": list(series)}})


def test_prefix_tenant_and_range_are_sent(server):
    url, observed, reply = server
    reply[1] = matrix()
    client = PrometheusClient("prod", Prometheus(url=url, prefix="/prometheus", tenant="team-a"))
    assert client.query_range("up", GRID) == []
    ((path, headers),) = observed
    asked = parse_qs(urlsplit(path).query)
    assert urlsplit(path).path == "/prometheus/api/v1/query_range"
    assert {key: asked[key] for key in ("query", "start", "end", "step")} == {
        "query": ["up"],
        "start": ["1795000000"],
        "end": ["1795000040"],
        "step": ["10"],
    }
    assert headers["X-Scope-OrgID"] == "team-a"


def test_values_stand_on_the_grid_and_what_is_no_number_is_missing(server):
    url, _, reply = server
    reply[1] = matrix(
        {
            "metric": {"job_id": "a"},
            "values": [[1_795_000_000, "1.5"], [1_795_000_020.0, "NaN"], [1_795_000_040, "+Inf"]],
        }
    )
    (result,) = PrometheusClient("prod", Prometheus(url=url)).query_range("up", GRID)
    np.testing.assert_array_equal(result.values, [1.5, np.nan, np.nan, np.nan, np.nan])
    assert result.labels == {"job_id": "a"}


@pytest.mark.parametrize(
    ("status", "text", "named"),
    [
        (422, '{"status":"error","error":"query processing would load too many samples"}', "too many samples"),
        (401, "<html>Unauthorized</html>", "refused with 401"),
        (200, "<html>a login page</html>", "not Prometheus' JSON"),
        (200, '{"status":"success","data":{"resultType":"vector","result":[]}}', "resultType 'vector'"),
        (200, "[]", "not Prometheus' JSON"),
        (200, '{"status":"success","data":[]}', "not Prometheus' JSON"),
    ],
)
def test_what_is_no_answer_is_named_with_its_section(server, status, text, named):
    url, _, reply = server
    reply[:] = [status, text]
    with pytest.raises(PrometheusError, match=r"\[clusters\.prod\.prometheus\]") as error:
        PrometheusClient("prod", Prometheus(url=url)).query_range("up", GRID)
    assert named in str(error.value)
    assert isinstance(error.value, PrometheusRefusedError) == (status != 200)


def test_no_server_is_named():
    with pytest.raises(PrometheusError, match=r"no usable reply .*attempts"):
        PrometheusClient("prod", Prometheus(url="http://127.0.0.1:1")).query_range("up", GRID)


def test_more_points_than_prometheus_gives_are_never_asked_for(server):
    url, observed, _ = server
    with pytest.raises(ValueError, match="11000"):
        PrometheusClient("prod", Prometheus(url=url)).query_range("up", QueryRange(0, 11_000, 1))
    assert observed == []


def test_queries_hold_matchers_and_changed_names():
    server = Prometheus(
        url="http://p:9090",
        matchers=('namespace="prod"', 'cluster=~"a|b"'),
        names=MetricNames(prefix="", task="tm_task"),
    )
    queries = Queries.of(server)
    assert queries.tasks.startswith('{__name__=~"tm_task_(numRecordsIn|')
    assert queries.tasks.endswith(')",namespace="prod",cluster=~"a|b"}')
    assert queries.task_times == 'timestamp(tm_task_numRecordsIn{namespace="prod",cluster=~"a|b"})'
    plain = Queries.of(Prometheus(url="http://p:9090"))
    assert plain.backlogs == '{__name__=~"flink_taskmanager_job_task_operator_(pendingRecords|.+_pendingRecords)"}'
    assert plain.sources.endswith('_operator_(numRecordsIn|numRecordsOut)",operator_name=~"Source:.*"}')


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ({"warnings": ["receive series from sidecar-3: DeadlineExceeded"]}, "sidecar-3"),
        ({"isPartial": True}, "isPartial"),
        ({"warnings": ["remote_read: remote server http://store/read returned 500"]}, "remote_read"),
        ({"warnings": ["results truncated due to limit"]}, "truncated"),
        ({"infos": ["store gateway 2 is unavailable"]}, "store gateway 2"),
    ],
)
def test_an_answer_that_says_that_it_is_partial_is_asked_again_and_then_refused(server, told, named):
    url, observed, reply = server
    reply[1] = json.dumps({**json.loads(matrix()), **told})
    client = PrometheusClient("prod", Prometheus(url=url), sleep=lambda _: None)
    with pytest.raises(PrometheusPartialError, match=named):
        client.query_range("up", GRID)
    assert len(observed) == 3
    asked = parse_qs(urlsplit(observed[0][0]).query)
    assert (asked["partial_response"], asked["deny_partial_response"]) == (["false"], ["1"])


def test_a_whole_answer_after_a_partial_one_counts(server):
    url, observed, reply = server
    reply[1] = json.dumps({**json.loads(matrix()), "isPartial": True})

    def become_whole(_: float) -> None:
        reply[1] = matrix({"metric": {}, "values": [[1_795_000_000, "1"]]})

    (result,) = PrometheusClient("prod", Prometheus(url=url), sleep=become_whole).query_range("up", GRID)
    assert (result.values[0], len(observed)) == (1.0, 2)


@pytest.mark.parametrize("told", [{"isPartial": False}, {"warnings": []}, {"infos": ["PromQL info: is no counter"]}])
def test_notes_on_the_query_are_no_sign_of_a_partial_answer(server, told):
    url, _, reply = server
    reply[1] = json.dumps({**json.loads(matrix()), **told})
    assert PrometheusClient("prod", Prometheus(url=url)).query_range("up", GRID) == []
