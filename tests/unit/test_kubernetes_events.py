"""Events on a job's resource: by Kubernetes' own client over HTTP, as an API server takes and refuses them.

The server is on loopback and judges an event as ``ValidateEventCreate`` of kubernetes/pkg/apis/core/validation does;
a real one takes the same events in ``tests/live/test_kubernetes_api.py``.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from controller_machine import JOB
from operator_model import ModelApi, ModelFlink, OperatorModel

from controller.actuators.actuator import RequestRefusedError
from controller.actuators.operator_actuator import OperatorActuator
from controller.actuators.resource_directory import ResourceDirectory
from include.kubernetes.api import CustomResourceApi
from include.kubernetes.events import EventRecorder
from include.kubernetes.faults import ApiRefusedError
from include.kubernetes.job_resource import read_job_resource
from include.settings.kubernetes import Kubernetes

NOW_S = 1_795_000_000.0
WANTED = {"a": 3, "b": 2}


@dataclass
class EventServer:
    """Its address, what it has taken, and whether it refuses or is slow."""

    url: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    asked: int = 0
    status: int = 201
    delay_s: float = 0.0


def find_fault(event: dict[str, Any], namespace: str) -> str:
    involved = event["involvedObject"]
    if event["metadata"].get("namespace") != namespace or involved["namespace"] != namespace:
        return "involvedObject.namespace: does not match event.namespace"
    if not (event["metadata"].get("name") or event["metadata"].get("generateName")):
        return "metadata.name: Required value: name or generateName is required"
    if len(event["message"]) > 1024:
        return "message: can have at most 1024 characters"
    if event["type"] not in {"Normal", "Warning"} or not event["reason"] or not event["reportingComponent"]:
        return "type, reason, reportingController: Required value"
    return ""


@pytest.fixture
def server() -> Iterator[EventServer]:
    state = EventServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.asked += 1
            time.sleep(state.delay_s)
            _, _, _, _, namespace, plural = self.path.partition("?")[0].split("/")
            fault = find_fault(body, namespace) if plural == "events" else "not found"
            status = 422 if fault else state.status
            message = fault or 'events is forbidden: User "tidewise" cannot create resource "events"'
            if status == 201:
                state.events.append(body)
            reply = body if status == 201 else {"kind": "Status", "status": "Failure", "message": message}
            content = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the signature is Python's
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield state
    http.shutdown()
    http.server_close()
    thread.join()


def open_recorder(server: EventServer) -> EventRecorder:
    from kubernetes import client

    options = client.Configuration(host=server.url)
    options.retries = False
    return EventRecorder(CustomResourceApi(client.ApiClient(options), "default", 2.0), lambda: NOW_S)


class RefusingApi(ModelApi):
    """The model's API server, whose admission refuses every patch."""

    def patch_resource(self, kind: str, name: str, patch: Any) -> Any:
        raise ApiRefusedError(403, "denied by policy")


def request(model: OperatorModel, api: ModelApi, recorder: EventRecorder) -> None:
    directory = ResourceDirectory(api, Kubernetes())
    actuator = OperatorActuator(ModelFlink(model), api, directory, events=recorder)
    observed = actuator.observe(JOB)
    actuator.request(JOB, str(observed.job_id), WANTED)


def test_what_was_asked_for_is_an_event_on_the_resource(server: EventServer) -> None:
    model, recorder = OperatorModel(), open_recorder(server)
    before = dict(model.requested)
    request(model, ModelApi(model), recorder)
    recorder.wait()
    (event,) = server.events
    changed = ", ".join(f"{name}: {before[name]} -> {count}" for name, count in WANTED.items() if before[name] != count)
    assert event["message"] == f"parallelism of {changed}; why: tidewise why"
    assert (event["type"], event["reason"]) == ("Normal", "RescaleRequested")
    involved = event["involvedObject"]
    assert (involved["kind"], involved["namespace"]) == ("FlinkDeployment", "default")
    assert involved["uid"] == model.read()["metadata"]["uid"]  # without it kubectl describe does not show the event
    assert event["firstTimestamp"] == "2026-11-18T11:06:40Z"


def test_what_the_api_server_refuses_is_a_warning(server: EventServer) -> None:
    model, recorder = OperatorModel(), open_recorder(server)
    with pytest.raises(RequestRefusedError):
        request(model, RefusingApi(model), recorder)
    recorder.wait()
    assert [(one["type"], one["reason"]) for one in server.events] == [("Warning", "RescaleRefused")]
    assert "denied by policy" in server.events[0]["message"]


def test_a_role_without_the_right_changes_nothing_and_is_said_once(
    server: EventServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.status = 403
    model, recorder = OperatorModel(), open_recorder(server)
    for _ in range(2):
        request(model, ModelApi(model), recorder)
        recorder.wait()
    assert model.requested == WANTED
    (line,) = [one.getMessage() for one in caplog.records if "no Kubernetes event" in one.getMessage()]
    assert "403" in line
    assert "tidewise manifests" in line
    server.status = 201
    request(model, ModelApi(model), recorder)
    recorder.wait()
    assert len(server.events) == 1


def test_a_slow_api_server_holds_nothing_up(server: EventServer) -> None:
    server.delay_s = 0.5
    model, recorder = OperatorModel(), open_recorder(server)
    began_s = time.monotonic()
    request(model, ModelApi(model), recorder)
    assert time.monotonic() - began_s < 0.4
    assert server.events == []
    recorder.wait()
    assert len(server.events) == 1


def test_nobody_there_and_a_message_that_is_too_long(server: EventServer) -> None:
    model = OperatorModel()
    gone = EventServer(url="http://127.0.0.1:1")
    recorder = open_recorder(gone)
    request(model, ModelApi(model), recorder)
    recorder.wait()
    assert model.requested == WANTED
    recorder = open_recorder(server)
    recorder.record(read_job_resource(model.read()), "RescaleRequested", "x" * 5000)
    recorder.wait()
    assert len(server.events) == 1
