"""Versions in the names of jobs: which names are one job says a cluster's pattern; ended jobs are in no sum."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from flink_server import FakeJob, FlinkServer, serving

from cli.plan import describe_plan
from cli.status import describe_fleet
from controller.actuators.flink_actuator import open_actuator
from fleet.facts import ClusterStatus, FleetStatus, JobStatus
from fleet.fleet_reader import FleetReader
from fleet.metrics import format_metrics
from include.arrow_rows import arrow_rows
from include.lake_table import LakeTable
from include.settings import SettingsError, check_settings
from include.settings.job_names import name_job
from include.tables import PLANS
from include.utc import DAY_S
from spark_jobs.plan.refusals import PlanRefusal

VERSIONED = r"(?P<job>.+?)-\d+\.\d+\.\d+"
NOW_S = datetime(2026, 11, 18, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (VERSIONED, {"orders-1.4.2": "orders", "orders-1.5.0": "orders", "orders": "orders", "x-1.5": "x-1.5"}),
        (r"v\d+_(?P<job>.*)", {"v7_rides": "rides", "v7_": "v7_", "rides_v7": "rides_v7"}),
        (r"(?P<job>orders|rides)(?:-blue|-green)?", {"orders-blue": "orders", "rides": "rides", "a-blue": "a-blue"}),
        (None, {"orders-1.4.2": "orders-1.4.2"}),
    ],
)
def test_a_pattern_names_the_job(pattern: str | None, names: dict[str, str]) -> None:
    assert {name: name_job(pattern, name) for name in names} == names


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("orders-.*", "needs one part"),
        ("(?P<job>a)(?P<job>b)", "is no regular expression"),
        ("(?P<job>a", "is no regular expression"),
        (r"(?P<job>\w+)(?=-)", "reads otherwise"),
        (r"(?P<job>\w+)-\Z", "reads otherwise"),
        (r"(?P<job>a)\1", "reads otherwise"),
    ],
)
def test_a_pattern_that_cannot_name_jobs_is_refused(pattern: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        check_settings({"clusters": {"prod": {"job_names": pattern}}})


def test_the_cluster_is_asked_for_the_job_by_what_its_name_means() -> None:
    jobs = [FakeJob("a" * 32, "orders-1.4.2", "CANCELED"), FakeJob("b" * 32, "orders-1.5.0")]
    with serving(FlinkServer(*jobs)) as server:
        settings = check_settings({"clusters": {"prod": {"rest_url": server.url, "job_names": VERSIONED}}})
        assert open_actuator(settings, "prod").observe("prod/orders").job_id == "b" * 32
        server.jobs.append(FakeJob("c" * 32, "orders-1.6.0"))
        assert open_actuator(settings, "prod").observe("prod/orders").problem == "ambiguous_name"


def write_plans(lake: str, **refusals: str | None) -> None:
    """A plan of jobs with three slots each."""
    as_of = datetime(2026, 11, 18, 11, tzinfo=UTC)
    of_all = {"cluster": "prod", "as_of": as_of, "date": as_of.date(), "slots_from": 3, "reason": "because"}
    rows = [
        {**of_all, "job": job, "status": "refused" if refusal else "hold", "refusal": refusal, "step_index": 0}
        for job, refusal in refusals.items()
    ]
    LakeTable(lake, PLANS).append_arrow(arrow_rows(PLANS, rows))


def test_ended_jobs_are_in_no_sum_and_named_apart(tmp_path) -> None:
    lake = str(tmp_path)
    write_plans(lake, old=PlanRefusal.JOB_ENDED, older=PlanRefusal.JOB_ENDED, orders=None, unseen=PlanRefusal.NO_GRAPH)
    reader = FleetReader(check_settings({"paths": {"lake": lake, "raw": lake}}), {})
    facts = reader.read(NOW_S)
    assert {one.job for one in facts.jobs if one.has_ended} == {"old", "older"}
    assert "prod: 2 jobs (2 dry-run), 6 slots, 2 ended;" in "\n".join(describe_fleet(facts))
    assert 'tidewise_slots{cluster="prod"} 6.0' in (metrics := format_metrics(facts))
    assert 'tidewise_jobs{cluster="prod",mode="dry-run"} 2.0' in metrics
    planned = describe_plan(facts, [], 24)
    assert "1 of 2 jobs stays as it is" in planned[-1]
    assert not any("older" in line for line in planned)
    assert len(reader._modes) == 4
    assert reader.read(NOW_S - DAY_S).jobs == ()  # of jobs that are not in its tables a reader of months holds nothing
    assert reader._modes == {}


def test_without_ended_jobs_none_are_named() -> None:
    cluster = ClusterStatus("prod", "auto", "", None, None, None)
    job = JobStatus("prod", "orders", "auto", "RUNNING", 4, None, None, "", "", None)
    facts = FleetStatus(NOW_S, (cluster,), (job, replace(job, job="rides")))
    assert "prod: 2 jobs (2 auto), 8 slots; controller" in "\n".join(describe_fleet(facts))
