"""`tidewise advise` on a real Prometheus that promtool filled with two weeks: what ran, and its cost."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from local_prometheus import fill, running_prometheus
from openmetrics_history import SOURCE_ID, WORK_ID, Run, graph_reply, rate_per_s, write_history

from include.utc import DAY_S, HOUR_S

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
JOB_ID = "c" * 32
DAYS, APPRAISED, EVERY_S, DOWN_S = 14, 5, 60, 30
END = datetime(2026, 10, 1, tzinfo=UTC)
START_S = int((END - timedelta(days=DAYS)).timestamp())
CAPACITY_PER_S = {SOURCE_ID: 1000.0, WORK_ID: 130.0}  # 330/s at the most: three subtasks of ``enrich`` are enough
# A person rescales once a day: hour of the history -> parallelism of ``enrich`` from then on.
RESCALED_AT_H = {24 * day + 3: 3 + day % 2 for day in range(DAYS)}


def runs() -> list[Run]:
    """Return a job whose ``enrich`` is rescaled once a day, and always has enough."""
    starts = [-2, *RESCALED_AT_H, 24 * DAYS + 2]
    parallelism = [4, *RESCALED_AT_H.values()]
    spans_s = itertools.pairwise(START_S + hour * HOUR_S for hour in starts)
    return [
        Run(JOB_ID, begin_s + DOWN_S, end_s, {SOURCE_ID: 1, WORK_ID: one}, "tm:1_a", CAPACITY_PER_S)
        for (begin_s, end_s), one in zip(spans_s, parallelism, strict=True)
    ]


@pytest.fixture(scope="module")
def advice(tmp_path_factory):
    """What the command wrote, and what it printed."""
    work = tmp_path_factory.mktemp("prometheus")
    write_history(work / "history.txt", runs(), EVERY_S)
    fill(work, work / "history.txt")
    (work / "graphs").mkdir()
    (work / "graphs" / "orders.json").write_text(json.dumps(graph_reply(JOB_ID)))
    server = "TIDEWISE__CLUSTERS__prometheus__"
    pace = {f"{server}WINDOW_S": 300, f"{server}PROMETHEUS__STEP_S": EVERY_S}
    pace |= {f"{server}PROMETHEUS__MAX_SAMPLE_AGE_S": EVERY_S - 1, f"{server}PROMETHEUS__REQUESTS_PER_S": 1000}
    with running_prometheus(work) as url:
        command = [sys.executable, "-m", "lab.commands.advise", "--prometheus", url, "--history-days", str(DAYS)]
        command += ["--graphs", str(work / "graphs")]
        command += ["--days", str(APPRAISED), "--seeds", "1", "--job-regex", "prometheus/orders"]
        command += ["--as-of", END.isoformat(), "--out", str(work / "out")]
        environment = os.environ | {name: str(value) for name, value in pace.items()}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    return json.loads((work / "out" / "advice.json").read_text()), done.stdout


def test_the_job_is_appraised(advice):
    result, shown = advice
    assert [(one["cluster"], one["job"]) for one in result["jobs"]] == [("prometheus", "orders")], result["skipped"]
    assert "advise: 1 job," in shown


def test_what_ran_is_told_as_it_was(advice):
    (job,) = advice[0]["jobs"]
    first_h = 24 * (DAYS - APPRAISED)
    hours = range(first_h, 24 * DAYS)
    parallelism = [RESCALED_AT_H[max(hour for hour in RESCALED_AT_H if hour <= at)] for at in hours]
    assert job["ran"]["slots"] == pytest.approx(sum(parallelism) / len(parallelism), rel=0.02)
    assert job["ran"]["rescales"] == pytest.approx(1.0, abs=0.15)


def test_its_cost_is_predicted_within_a_tenth(advice):
    (job,) = advice[0]["jobs"]
    reported = job["calibration"]
    print(reported)
    assert reported["costs"]["measured_share"] > 0.9
    assert reported["costs"]["slot_hours_came"] == pytest.approx(24 * job["ran"]["slots"], rel=0.05)
    assert reported["costs"]["cost"] == pytest.approx(reported["costs"]["cost_came"], rel=0.1)
    assert reported["capacity_error"] < 0.1
    assert reported["load_error"] < 0.1


def test_fewer_slots_are_advised(advice):
    """No option needs more than what the load needs at its peak, and what ran had more."""
    needed = math.ceil(
        max(rate_per_s(START_S + hour * HOUR_S) for hour in range(DAY_S // HOUR_S)) / CAPACITY_PER_S[WORK_ID]
    )
    (job,) = advice[0]["jobs"]
    by_name = {one["name"]: one for one in job["options"]}
    assert by_name["planner"]["slots"] <= by_name["constant"]["slots"] <= needed < by_name["ran"]["slots"]
