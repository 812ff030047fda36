"""What the controller reads between ticks: newest plans, memories, graphs and forecasts, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from controller.view.plan_rows import LoadBand, PolicyMemory
from controller.view.plan_tables import PlanTables
from include.domain.graph import JobGraph, Operator
from include.lake_table import LakeTable, date_of, timestamp_of
from include.tables import FORECASTS, JOB_GRAPHS, PLANS, POLICY_MEMORY, Table

NOW = datetime(2026, 11, 20, 18, 30, tzinfo=UTC)
NOW_S = NOW.timestamp()
HOUR = timedelta(hours=1)


def append(lake: Path, table: Table, *rows: dict[str, Any]) -> None:
    LakeTable(str(lake), table).append(rows)


def plan(as_of: datetime, job: str = "orders", index: int = 0, **changes: Any) -> dict[str, Any]:
    row = {
        "as_of": as_of,
        "step_id": f"{job}-{as_of:%H%M}-{index}",
        "cluster": "live",
        "job": job,
        "job_id": "j1",
        "step_index": index,
        "status": "planned",
        "apply_at": as_of + (index + 1) * HOUR,
        "effective_at": as_of + (index + 1) * HOUR,
        "valid_until": as_of + (index + 2) * HOUR,
        "parallelism_from": {"map": 2},
        "parallelism_to": {"map": 4 + index},
        "slots_from": 2,
        "slots": 4 + index,
        "expected_load_q50_per_s": 900.0,
        "expected_load_q90_per_s": 1000.0,
        "expected_recovery_s": 120.0,
        "reason": "load rises",
        "policy": "planner",
        "model_version": "m1",
        "forecast_version": f"f-{as_of:%H%M}",
        "date": as_of.date(),
    }
    return row | changes


def test_the_newest_plan_of_every_job_whatever_became_of_it(tmp_path) -> None:
    at_six, at_five = NOW - HOUR / 2, NOW - HOUR * 1.5
    append(tmp_path, PLANS, plan(at_five), plan(at_five, "only at five"), plan(at_five, index=1))
    none = {"apply_at": None, "valid_until": None, "parallelism_to": None}
    append(
        tmp_path,
        PLANS,
        plan(at_six, index=1),
        plan(at_six),
        plan(at_six, "held", status="hold", **none),
        plan(at_six, "refused", status="refused", refusal="no_model", **none),
        plan(at_six + HOUR, "orders"),  # of a run to come
    )
    plans = PlanTables(str(tmp_path)).read_plans(NOW_S)
    assert {key: len(result.steps) for key, result in plans.items()} == {
        ("live", "orders"): 2,
        ("live", "only at five"): 1,
        ("live", "held"): 0,
        ("live", "refused"): 0,
    }
    orders = plans["live", "orders"]
    assert (orders.as_of_s, orders.forecast_version) == (at_six.timestamp(), "f-1800")
    assert [step.step_id for step in orders.steps] == ["orders-1800-0", "orders-1800-1"]
    first = orders.steps[0]
    assert first.parallelism_to == {"map": 4}
    assert (first.apply_at_s, first.valid_until_s) == (at_six.timestamp() + 3600, at_six.timestamp() + 7200)
    assert (first.expected_load_q50_per_s, first.expected_load_q90_per_s, first.expected_recovery_s) == (
        900.0,
        1000.0,
        120.0,
    )


def test_without_a_new_version_nothing_is_read_again(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(tmp_path, PLANS, plan(NOW - HOUR))
    tables = PlanTables(str(tmp_path))
    first = tables.read_plans(NOW_S)
    reads: list[str] = []
    read = LakeTable.read
    monkeypatch.setattr(
        LakeTable, "read", lambda self, *given, **named: reads.append("") or read(self, *given, **named)
    )
    assert tables.read_plans(NOW_S + 60) is first
    assert reads == []
    append(tmp_path, PLANS, plan(NOW, "new"))
    assert set(tables.read_plans(NOW_S + 120)) == {("live", "orders"), ("live", "new")}
    assert reads != []


def test_a_plan_counts_from_its_own_time_on(tmp_path) -> None:
    append(tmp_path, PLANS, plan(NOW - HOUR), plan(NOW + HOUR))
    tables = PlanTables(str(tmp_path))
    assert tables.read_plans(NOW_S)["live", "orders"].as_of_s == NOW_S - 3600
    assert tables.read_plans(NOW_S + 3600)["live", "orders"].as_of_s == NOW_S + 3600


def test_what_was_never_written_is_empty(tmp_path) -> None:
    tables = PlanTables(str(tmp_path))
    assert tables.read_plans(NOW_S) == tables.read_memories(NOW_S) == tables.read_graphs(NOW_S) == {}
    assert tables.read_forecasts(NOW_S).load_band("live", "orders", "f", NOW_S) is None
    append(tmp_path, PLANS, plan(NOW - HOUR))
    assert len(tables.read_plans(NOW_S)) == 1


def test_older_days_stay_closed(tmp_path) -> None:
    append(tmp_path, PLANS, plan(NOW - timedelta(days=40), "long gone"))
    append(tmp_path, PLANS, plan(NOW - HOUR))
    (folder,) = (tmp_path / PLANS.relative_path).glob(f"date={(NOW - timedelta(days=40)).date()}")
    for path in folder.iterdir():
        path.unlink()
    assert set(PlanTables(str(tmp_path)).read_plans(NOW_S)) == {("live", "orders")}


def test_memories_are_those_of_plans(tmp_path) -> None:
    def memory(stage: str, as_of: datetime, text: str) -> dict[str, Any]:
        key = {"cluster": "live", "job": "orders", "policy": "planner"}
        return {"stage": stage, "as_of": as_of, "memory": text, "date": as_of.date()} | key

    append(tmp_path, POLICY_MEMORY, memory("plan", NOW - 2 * HOUR, "old"), memory("plan", NOW - HOUR, "new"))
    append(tmp_path, POLICY_MEMORY, memory("learn", NOW, "of the night"))
    append(tmp_path, POLICY_MEMORY, memory("plan", NOW - HOUR, "") | {"job": "of a policy that leaves nothing"})
    result = PlanTables(str(tmp_path)).read_memories(NOW_S)
    assert result == {("live", "orders"): PolicyMemory("planner", "new")}


def vertex(at: datetime, job_id: str, name: str, position: int, upstream: list[str]) -> dict[str, Any]:
    return {
        "cluster": "live",
        "job": "orders",
        "job_id": job_id,
        "operator": name,
        "vertex_id": f"id of {name}",
        "position": position,
        "upstream": upstream,
        "ship_strategies": ["HASH"] * len(upstream),
        "parallelism": 2,
        "max_parallelism": 64,
        "observed_at": at,
        "date": at.date(),
        "hour": at.hour,
    }


def test_a_graph_is_that_of_the_job_id_that_was_seen_last(tmp_path) -> None:
    append(tmp_path, JOB_GRAPHS, vertex(NOW - 2 * HOUR, "j1", "gone", 0, []))
    told = vertex(NOW - HOUR, "j2", "sink", 1, ["source"]) | {"slot_sharing_group": "default"}
    append(tmp_path, JOB_GRAPHS, told, vertex(NOW - HOUR, "j2", "source", 0, []))  # without a group it is in this one
    graph = PlanTables(str(tmp_path)).read_graphs(NOW_S)["live", "orders"]
    assert graph.operators == (
        Operator("source", (), 64, is_keyed=False, slot_sharing_group="default"),
        Operator("sink", ("source",), 64, is_keyed=True, slot_sharing_group="default"),
    )
    append(tmp_path, JOB_GRAPHS, vertex(NOW, "j3", "source", 0, []), vertex(NOW, "j4", "bids", 0, []))
    assert PlanTables(str(tmp_path)).read_graphs(NOW_S)["live", "orders"].names == ("bids",)


def test_a_graph_says_what_its_table_leaves_out_and_one_that_cannot_be_is_said_once(tmp_path, caplog) -> None:
    unset = vertex(NOW, "j1", "bids", 0, []) | {"max_parallelism": None, "ship_strategies": None, "partitions": 8}
    own = vertex(NOW, "j1", "map", 1, ["bids"]) | {"ship_strategies": ["FORWARD"], "slot_sharing_group": "own"}
    append(tmp_path, JOB_GRAPHS, unset, own, vertex(NOW, "j2", "fed by none", 0, ["nowhere"]) | {"job": "broken"})
    tables = PlanTables(str(tmp_path))
    graphs = tables.read_graphs(NOW_S)
    assert tables.read_graphs(NOW_S) is graphs
    expected = [
        Operator("bids", (), 128, partitions=8, is_keyed=False, slot_sharing_group="default"),
        Operator("map", ("bids",), 64, is_keyed=False, slot_sharing_group="own"),
    ]
    assert {name: graph.operators for name, graph in graphs.items()} == {
        ("live", "orders"): JobGraph.from_operators(expected).operators
    }
    assert [one.getMessage().partition(":")[0] for one in caplog.records] == ["live/broken"]


def forecast_bin(operator: str, start: datetime, q50: float, version: str = "f-1730") -> dict[str, Any]:
    return {
        "as_of": NOW - HOUR,
        "cluster": "live",
        "job": "orders",
        "operator": operator,
        "bin_start": start,
        "bin_s": 300,
        "q10_per_s": q50,
        "q50_per_s": q50,
        "q90_per_s": 2 * q50,
        "q95_per_s": 3 * q50,
        "forecast_version": version,
        "date": NOW.date(),
    }


def test_a_load_band_is_that_of_the_bin_and_of_all_sources(tmp_path) -> None:
    append(tmp_path, PLANS, plan(NOW - HOUR))
    five = timedelta(minutes=5)
    bins = [(source, NOW + n * five, q50 + n) for source, q50 in (("a", 100.0), ("b", 1000.0)) for n in range(3)]
    append(tmp_path, FORECASTS, *(forecast_bin(*one) for one in bins))
    append(tmp_path, FORECASTS, forecast_bin("a", NOW, 7.0, "of another plan"))
    forecasts = PlanTables(str(tmp_path)).read_forecasts(NOW_S)

    def band(at_s: float, version: str = "f-1730") -> LoadBand | None:
        return forecasts.load_band("live", "orders", version, at_s)

    assert band(NOW_S + 10) == LoadBand(1100.0, 2200.0)
    assert band(NOW_S - 3600) == band(NOW_S + 300) == LoadBand(1100.0, 2200.0)
    assert band(NOW_S + 301) == LoadBand(1102.0, 2204.0)
    assert band(NOW_S + 86_400) == LoadBand(1104.0, 2208.0)
    assert band(NOW_S, "of another plan") is None  # no plan in force has it
    assert forecasts.load_band("live", "other", "f-1730", NOW_S) is None


def test_a_table_of_an_earlier_release_lacks_a_column(tmp_path) -> None:
    columns = {name: kind for name, kind in PLANS.columns.items() if name != "forecast_version"}
    append(tmp_path, Table(PLANS.name, columns, PLANS.keys, PLANS.partition_by), plan(NOW - HOUR))
    assert PlanTables(str(tmp_path)).read_plans(NOW_S)["live", "orders"].forecast_version is None
    append(tmp_path, PLANS, plan(NOW, forecast_version="of now"))
    assert PlanTables(str(tmp_path)).read_plans(NOW_S)["live", "orders"].forecast_version == "of now"


def test_dates_are_in_utc() -> None:
    assert date_of(datetime(2026, 11, 20, 23, 59, tzinfo=UTC).timestamp()).isoformat() == "2026-11-20"
    assert timestamp_of(0.0).isoformat() == "1970-01-01T00:00:00+00:00"
