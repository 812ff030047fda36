"""How many requests a tick of the controller, and small tables in a stage, make to a bucket."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, date, datetime

import pytest
from local_s3 import list_requests, s3_environment, s3_server

from include.lake_table import LakeTable
from include.table_creation import ensure_table
from include.tables import FORECASTS, INTERVENTIONS, JOB_GRAPHS, OPERATOR_KEYS, PLANS, POLICY_MEMORY

AT = datetime(2026, 11, 20, 12, 0, 30, tzinfo=UTC)
IDLE_MOST, EVALUATION_MOST = 10, 12
"""Of an evaluation that writes nothing. Before tables were asked for by one small request each, and what persons have
set was listed once, a tick without news made 20."""


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch, tmp_path):
    with s3_server() as running:
        variables = s3_environment(running) | {
            "TIDEWISE__PATHS__RAW": str(tmp_path / "raw"),
            "TIDEWISE__PATHS__OUT": str(tmp_path / "out"),
            "TIDEWISE__MLFLOW__TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db",
            "TIDEWISE__MLFLOW__ARTIFACT_ROOT": str(tmp_path / "artifacts"),
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield running


def kinds(requests: list[str]) -> Counter[str]:
    """Return method and what it is about -> requests; of a listing its prefix."""
    return Counter(re.sub(r"\?.*prefix=([^&]*).*", r"?\1", one) for one in requests)


@pytest.mark.long
def test_a_tick_asks_for_each_table_once_and_lists_what_persons_have_set_once(address: str) -> None:
    from controller.wiring import build_ticker
    from include.settings import load_settings

    lake, now = load_settings().paths.lake, {"s": AT.timestamp()}
    # A job that nobody polls any more is decided on as well, and costs what another one does.
    step = {"as_of": AT, "step_id": "1", "cluster": "live", "job": "orders", "step_index": 0, "date": AT.date()}
    LakeTable(lake, PLANS).append([{**step, "status": "hold", "reason": "nothing changes"}])
    for table in (FORECASTS, POLICY_MEMORY, JOB_GRAPHS, OPERATOR_KEYS):
        ensure_table(lake, table)
    ticker = build_ticker(load_settings, ["live"], "me", lambda: now["s"], is_rehearsal=True)
    idle, evaluations = [], []
    for _ in range(7):
        now["s"] += 60.0
        list_requests(address)
        summary = ticker.tick()
        assert summary.jobs == 1
        assert not summary.problems
        (evaluations if summary.is_evaluation else idle).append(list_requests(address))
    counted = kinds(idle[-1])
    print(f"idle ticks: {[len(one) for one in idle]}, evaluations: {[len(one) for one in evaluations]}")
    print("evaluation:", *sorted(kinds(evaluations[-1]).items()), sep="\n")
    assert [one for one in counted if "?" in one and "_delta_log" in one] == []  # no log of a table is listed
    assert counted["GET ?run/lake/_control/"] == 1
    assert len(idle[-1]) <= IDLE_MOST
    assert len(evaluations[-1]) <= EVALUATION_MOST


@pytest.mark.long
def test_a_stage_reads_the_log_of_a_small_table_once(address: str) -> None:
    from include.settings import load_settings
    from spark_jobs.lake import Lake

    lake = Lake(None, load_settings().paths.lake)  # type: ignore[arg-type]
    row = {
        "at": AT,
        "act": "hold",
        "scope": "all",
        "by": "anna",
        "date": date(2026, 11, 20),
    }
    for _ in range(3):
        LakeTable(lake.root, INTERVENTIONS).append([row])
    list_requests(address)
    made = []
    for _ in range(3):
        assert lake.exists(INTERVENTIONS)
        assert lake.version(INTERVENTIONS) == 3
        made.append(list_requests(address))
    print(f"asked three times: {[len(one) for one in made]}")
    assert [len(one) for one in made[1:]] == [1, 1]
    LakeTable(lake.root, INTERVENTIONS).append([row])  # by somebody else
    assert lake.version(INTERVENTIONS) == 4
    assert not lake.exists(PLANS)
    LakeTable(lake.root, PLANS).append([{"as_of": row["at"], "step_id": "1", "status": "hold", "date": row["date"]}])
    assert lake.exists(PLANS)  # it has come since
