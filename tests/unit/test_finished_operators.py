"""Operators that have finished in a job that runs on."""

from __future__ import annotations

import pytest

from include.domain.finished_operators import drop_finished
from models.polling.job_layout import lay_out
from models.polling.job_replies import Vertex, read_job
from models.polling.run_log import RunLog

UPSTREAM = {"orders": (), "snapshot": (), "parse": ("snapshot",), "enrich": ("orders", "parse"), "sink": ("enrich",)}


@pytest.mark.parametrize(
    ("finished", "left"),
    [
        ((), UPSTREAM),
        (("snapshot",), {"orders": (), "enrich": ("orders",), "sink": ("enrich",)}),
        (("orders",), {"snapshot": (), "parse": ("snapshot",), "enrich": ("parse",), "sink": ("enrich",)}),
        (("orders", "snapshot"), {}),
    ],
)
def test_what_is_fed_by_finished_operators_alone_goes_with_them(finished, left):
    assert drop_finished(UPSTREAM, finished) == left


def test_the_graph_has_what_works_and_the_others_are_named():
    states = {"1": "RUNNING", "2": "FINISHED", "3": "RUNNING", "4": "CANCELED"}
    vertices = [Vertex(one, f"v{one}", 1, 128, state) for one, state in states.items()]
    result = lay_out(vertices, [("1", ()), ("2", ()), ("3", ("2",)), ("4", ("1", "3"))])
    assert result.operators == ("v1", "v4")  # a task that was cancelled in a running job comes back
    assert result.graph is not None
    assert result.graph.operators[1].upstream == ("v1",)
    assert (result.finished, result.idle) == ({"v2": "2"}, {"v3": "3"})
    assert [one.name for one in result.placed] == ["v1", "v2", "v3", "v4"]


def test_windows_are_disturbed_while_tasks_of_a_running_job_restore():
    log = RunLog()
    shown = {100_000: "RUNNING", 160_000: "INITIALIZING", 220_000: "INITIALIZING", 280_000: "RUNNING"}
    for at_ms, status in shown.items():
        vertices = [{"id": "1" * 32, "name": "x", "status": status}]
        body = {"name": "x", "state": "RUNNING", "timestamps": {"RUNNING": 1}, "vertices": vertices}
        log.add_reply(at_ms, read_job(body))
    assert not log.has_stops
    assert [(one.started_ms, one.ended_ms) for one in log.disturbances()] == [(160_000, 280_000)]


@pytest.mark.parametrize(("state", "is_down"), [("FINISHED", False), ("CANCELED", False), ("FAILED", True)])
def test_a_job_that_came_to_its_end_is_not_down(state, is_down):
    log = RunLog()
    for at_ms, shown in ((1000, "RUNNING"), (2000, state)):
        log.add_reply(at_ms, read_job({"name": "x", "state": shown, "timestamps": {"RUNNING": 1}, "vertices": []}))
    assert log.is_down is is_down
