"""The client against a real HTTP server on loopback that speaks as Flink does."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from include.flink.faults import FlinkError, FlinkRefusedError, FlinkUnreachableError
from lab.local_flink.job_client import JobClient, ParallelismNotReachedError

JOB = "f" * 32
NAMES = {"v1": "Source: orders", "v2": "enrich"}


class Flink:
    """State of the pretended JobManager; ``seen`` has every request.

    Connections are closed unanswered (``drop``), or in the middle of the reply (``cut``), so many times.
    """

    def __init__(self):
        self.parallelism = {"v1": 1, "v2": 1}
        self.statuses = ["RUNNING"]
        self.seen = []
        self.drop = 0
        self.cut = 0

    def job(self):
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        vertices = [
            {"id": v, "name": NAMES[v], "parallelism": p, "status": status} for v, p in self.parallelism.items()
        ]
        return {"jid": JOB, "state": "RUNNING", "vertices": vertices}

    def answer(self, method, path, body):
        if path == "/overview":
            return 200, {"slots-total": 8}
        if path == f"/jobs/{JOB}":
            return 200, self.job()
        if path.endswith("/resource-requirements") and method == "GET":
            return 200, {v: {"parallelism": {"lowerBound": 1, "upperBound": p}} for v, p in self.parallelism.items()}
        if path.endswith("/resource-requirements"):
            tops = {v: bound["parallelism"]["upperBound"] for v, bound in body.items()}
            if max(tops.values()) > 128:
                trace = "CompletionException\n\tat x.Y\nCaused by: exceeds its maximum parallelism 128."
                return 400, {"errors": ["RestHandlerException: refused.", trace]}
            self.parallelism = tops
            return 200, {}
        return 404, {"errors": ["Not found: /jobs/nosuch"]}


@pytest.fixture
def flink():
    state = Flink()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self):
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
            state.seen.append((self.command, self.path, body))
            if state.drop > 0:
                state.drop -= 1
                self.connection.close()
                return
            status, payload = state.answer(self.command, self.path, body)
            text = json.dumps(payload).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if state.cut > 0:
                state.cut -= 1
                text = text[: len(text) // 2]
            self.wfile.write(text)

        do_GET = do_PUT = handle_any  # noqa: N815 - the names that http.server looks for

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


def client_of(flink, **options):
    return JobClient(flink.url, backoff_factor_s=0.0, **options)


def test_get_is_repeated_after_a_lost_connection(flink):
    flink.drop = 2
    assert client_of(flink, retries=2).overview() == {"slots-total": 8}
    assert len(flink.seen) == 3


def test_get_is_repeated_after_half_a_reply(flink):
    flink.cut = 2
    assert client_of(flink, retries=2).overview() == {"slots-total": 8}
    assert len(flink.seen) == 3


def test_waits_between_attempts_grow(flink, monkeypatch):
    waited = []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", waited.append)
    flink.drop = 9
    with pytest.raises(FlinkUnreachableError, match="4 attempts: ProtocolError"):
        JobClient(flink.url, retries=3).overview()
    assert waited == [0.4, 0.8]


def test_get_gives_up_by_name_after_its_retries(flink):
    flink.drop = 9
    with pytest.raises(FlinkUnreachableError, match="3 attempts"):
        client_of(flink, retries=2).overview()
    assert len(flink.seen) == 3


def test_put_is_never_repeated(flink):
    flink.drop = 1
    with pytest.raises(FlinkUnreachableError):
        client_of(flink, retries=5).put_resource_requirements(JOB, {"v1": 2, "v2": 2})
    assert [method for method, _, _ in flink.seen] == ["PUT"]


def test_a_put_that_finds_nobody_is_sent_once():
    client = JobClient("http://127.0.0.1:1", retries=5)
    with pytest.raises(FlinkUnreachableError, match="1 attempts: NewConnectionError"):
        client.transport.send_json("PUT", "/jobs", json={})


def test_nothing_listens(flink):
    client = JobClient("http://127.0.0.1:1", retries=0)
    with pytest.raises(FlinkUnreachableError, match=r"127\.0\.0\.1:1.*check rest_url"):
        client.overview()


def test_a_proxy_of_the_environment_is_not_used(flink, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert client_of(flink, retries=0).overview() == {"slots-total": 8}


def test_refusal_carries_flinks_reason(flink):
    with pytest.raises(FlinkRefusedError, match=r"400.*exceeds its maximum parallelism 128") as caught:
        client_of(flink).set_parallelism(JOB, {"enrich": 200})
    assert caught.value.status == 400
    assert "\tat" not in caught.value.message


def test_set_parallelism_names_every_vertex_and_keeps_the_others(flink):
    flink.parallelism = {"v1": 3, "v2": 1}
    assert client_of(flink).set_parallelism(JOB, {"enrich": 2}) == {"Source: orders": 3, "enrich": 2}
    method, path, body = flink.seen[-1]
    assert (method, path) == ("PUT", f"/jobs/{JOB}/resource-requirements")
    assert body == {
        "v1": {"parallelism": {"lowerBound": 1, "upperBound": 3}},
        "v2": {"parallelism": {"lowerBound": 1, "upperBound": 2}},
    }


def test_an_unknown_operator_is_refused_before_anything_is_sent(flink):
    with pytest.raises(FlinkError, match="no operator \\['enrihc'\\]"):
        client_of(flink).set_parallelism(JOB, {"enrihc": 2})
    assert all(method == "GET" for method, _, _ in flink.seen)


def test_running_parallelism_is_empty_while_a_vertex_is_not_running(flink):
    flink.statuses = ["INITIALIZING"]
    assert client_of(flink).running_parallelism(JOB) == {}


def test_wait_confirms_only_what_runs_and_reports_the_seconds(flink):
    flink.parallelism = {"v1": 1, "v2": 2}
    flink.statuses = ["DEPLOYING", "INITIALIZING", "RUNNING"]
    now = [100.0]
    client = client_of(flink)
    confirmed = client.wait_for_parallelism(
        JOB, {"enrich": 2}, poll_every_s=2, clock=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s)
    )
    assert confirmed.parallelism == {"Source: orders": 1, "enrich": 2}
    assert (confirmed.seconds, confirmed.polls) == (4.0, 3)


def test_wait_ends_with_what_was_seen(flink):
    now = [0.0]
    with pytest.raises(ParallelismNotReachedError, match=r"wanted \{'enrich': 9\}.*'enrich': 1"):
        client_of(flink).wait_for_parallelism(
            JOB, {"enrich": 9}, timeout_s=5, clock=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s)
        )


def test_wait_outlives_a_jobmanager_that_is_silent_for_a_moment(flink):
    flink.drop = 1
    now = [0.0]
    confirmed = client_of(flink, retries=0).wait_for_parallelism(
        JOB, {}, clock=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s)
    )
    assert confirmed.polls == 2
