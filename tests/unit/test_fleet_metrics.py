"""Metrics, alert rules and dashboard: one set of names, each fault has its alert, and promtool takes all of it."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace

import pytest

from fleet.facts import ClusterStatus, FleetStatus, HealthFact, JobStatus
from fleet.health import Fault
from fleet.metrics import format_metrics, list_families
from include.settings import PROJECT
from tools.test_parts import PartMissingError, find_prometheus

MONITORING = PROJECT / "docs" / "monitoring"
NOW_S = 1_795_000_000.0
CLUSTER = ClusterStatus('a "b"\n\\c', "auto", "here:1", NOW_S - 10, None, NOW_S - 3600, 1000, 7, 0)
JOB = JobStatus(CLUSTER.cluster, "orders", "auto", "RUNNING", 4, None, None, "", "", None)
FAULT = HealthFact(Fault.STEPS_REFUSED, f"{CLUSTER.cluster}/orders", True, 9.0, 6.0, "count", "", "")
FACTS = FleetStatus(NOW_S, (CLUSTER,), (JOB, replace(JOB, job="payments", slots_now=3)), health=(FAULT, FAULT))


def named_metrics(text: str) -> set[str]:
    return set(re.findall(r"\btidewise_[a-z0-9_]+", text))


def promtool(*arguments: str, given: str = "") -> str:
    try:
        program = find_prometheus() / "promtool"
    except PartMissingError as error:
        pytest.skip(str(error))
    done = subprocess.run([program, *arguments], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_what_is_counted_and_what_nobody_knows() -> None:
    text = format_metrics(FACTS)
    label = r'cluster="a \"b\"\n\\c"'
    assert f"tidewise_slots{{{label}}} 7.0" in text
    assert f'tidewise_jobs{{{label},mode="auto"}} 2.0' in text
    assert f'tidewise_faults{{{label},fault="steps_refused"}} 2.0' in text
    assert "tidewise_plan_as_of_timestamp_seconds{" not in text  # unknown is not zero
    assert "orders" not in text  # as many series as clusters, however many jobs


def test_promtool_takes_the_metrics() -> None:
    assert promtool("check", "metrics", given=format_metrics(FACTS)) == ""


def test_each_alert_fires_with_its_fault_and_clears() -> None:
    assert "SUCCESS" in promtool("test", "rules", str(MONITORING / "alerts_test.yml"))


def test_alerts_and_dashboard_name_what_there_is() -> None:
    known = {family.name for family in list_families(FACTS)}
    alerts, dashboard = (MONITORING / "alerts.yml").read_text(), (MONITORING / "dashboard.json").read_text()
    assert named_metrics(alerts) <= known
    assert named_metrics(dashboard) <= known
    assert set(re.findall(r'fault="([a-z_]+)"', alerts)) == set(Fault)
    panels = json.loads(dashboard)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 5
    assert all(panel["targets"] and panel["title"] for panel in panels)
