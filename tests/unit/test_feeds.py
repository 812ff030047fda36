"""Jobs that feed each other through a topic: known from settings, and never rescaled at the same minute."""

from __future__ import annotations

from typing import Any

import pytest

from controller.decisions.job_control import JobControl, JobTask
from include.settings import SettingsError, check_settings
from models.control.case import Case, Verb
from models.control.limits import Limits
from models.control.reconcile import reconcile
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin, Request
from tests.unit.test_operator_limits import NOW_S, Cluster, Log, task

KAFKA = {
    "bootstrap_servers": "broker:9092",
    "topics": {"alerts/Source: clicks": ["clicks"], "alerts/Source: users": ["users"], "other/Source: x": ["x"]},
    "writes": {"ingest": ["clicks", "dead"]},
}


def test_settings_and_topics_tell_which_jobs_feed_each_other() -> None:
    settings = check_settings(
        {
            "clusters": {"c": {"kafka": {"main": KAFKA}}},
            "limits": {"jobs": {"c/alerts": {}, "c/report": {"fed_by": ["alerts"]}}},
        }
    )
    assert settings.neighbours_of("c", "ingest") == {"c/alerts"}
    assert settings.neighbours_of("c", "alerts") == {"c/ingest", "c/report"}
    assert settings.neighbours_of("c", "report") == {"c/alerts"}
    assert settings.neighbours_of("c", "other") == frozenset()


@pytest.mark.parametrize(
    ("fed_by", "says"), [(["report"], "names the job itself"), (["c/alerts"], "names a cluster; jobs of one cluster")]
)
def test_a_feed_that_cannot_be_is_refused_by_name(fed_by: list[str], says: str) -> None:
    with pytest.raises(SettingsError, match=r'limits\.jobs\."c/report"\.fed_by') as refused:
        check_settings({"clusters": {"c": {}}, "limits": {"jobs": {"c/report": {"fed_by": fed_by}}}})
    assert says in str(refused.value)


def pair(**limits: Any) -> list[JobTask]:
    return [task("c/up", 8, 5, neighbours=("c/down",), **limits), task("c/down", 8, 0, neighbours=("c/up",), **limits)]


def test_two_jobs_that_feed_each_other_do_not_go_out_in_one_tick() -> None:
    cluster, log, clock = Cluster(["c/up", "c/down"], free=100), Log(), [NOW_S]
    controller = JobControl(cluster, log, lambda: None, lambda: clock[0])
    controller.control_jobs(pair())  # taken over as they are
    actions = controller.control_jobs(pair())
    assert cluster.sent == [("c/up", 8)]
    assert {job: str(one.reason) for job, one in actions.items()} == {"c/up": "plan", "c/down": "neighbour_rescales"}
    cluster.asked["c/up"] = {"a": 8}  # it runs so a minute later, and catches up
    clock[0] += 60
    waits = controller.control_jobs(pair())
    assert (waits["c/up"].verb, str(waits["c/down"].reason)) == (Verb.CONFIRM, "neighbour_rescales")
    clock[0] += 120
    assert str(controller.control_jobs(pair())["c/down"].reason) == "neighbour_rescales"
    clock[0] += 300
    controller.control_jobs(pair())
    assert cluster.sent == [("c/up", 8), ("c/down", 8)]


def test_jobs_that_do_not_feed_each_other_go_out_together() -> None:
    cluster, log = Cluster(["c/a", "c/b"], free=100), Log()
    controller = JobControl(cluster, log, lambda: None, lambda: NOW_S)
    tasks = [task("c/a", 8, 0), task("c/b", 8, 0)]
    controller.control_jobs(tasks)
    controller.control_jobs(tasks)
    assert cluster.sent == [("c/a", 8), ("c/b", 8)]


def test_a_job_that_restarts_does_not_wait_for_its_neighbour() -> None:
    known = JobHistory(job_id="j", known_requested={"a": 4})
    wanted = Intention({"a": 8}, Origin.REACTIVE, "s", "its backlog", NOW_S + 600)
    down = ObservedJob("j", "RESTARTING", {}, {"a": 4}, free_slots=20, neighbours_rescaled=("c/up",))
    action = reconcile(Case(NOW_S, wanted, down, known, Limits(mode=Mode.AUTO)))
    assert isinstance(action.request, Request)
    runs = ObservedJob("j", "RUNNING", {"a": 4}, {"a": 4}, free_slots=20, neighbours_rescaled=("c/up",))
    waits = reconcile(Case(NOW_S, wanted, runs, known, Limits(mode=Mode.AUTO)))
    assert (waits.verb, str(waits.reason)) == (Verb.WAIT, "neighbour_rescales")
    assert "c/up" in waits.detail
