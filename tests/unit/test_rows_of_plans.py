"""Rows of the tables of planning that say little, and when a table is read again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controller.view.plan_tables import PlanTables
from include.domain.operator_matching import PlacedOperator
from include.tables import FORECASTS, OPERATOR_KEYS, PLANS
from tests.unit.test_plan_tables import HOUR, NOW, NOW_S, append, forecast_bin, plan


def test_tables_without_rows_are_no_trouble(tmp_path, caplog: pytest.LogCaptureFixture) -> None:
    tables = PlanTables(str(tmp_path))
    append(tmp_path, PLANS, plan(NOW + HOUR))  # of a run to come
    assert tables.read_plans(NOW_S) == tables.read_memories(NOW_S) == tables.read_graphs(NOW_S) == {}
    assert not caplog.records


def test_a_job_whose_step_has_no_time_has_no_plan_and_the_others_keep_theirs(tmp_path, caplog) -> None:
    """The table refuses such rows, unless it was made by somebody else."""
    append(
        tmp_path,
        replace(PLANS, checks={}),
        plan(NOW - HOUR),
        plan(NOW - HOUR, "without a beginning", apply_at=None),
        plan(NOW - HOUR, "without an end", valid_until=None),
    )
    assert set(PlanTables(str(tmp_path)).read_plans(NOW_S)) == {("live", "orders")}
    assert [one.getMessage().partition(":")[0] for one in caplog.records] == [
        "live/without a beginning",
        "live/without an end",
    ]
    assert all("has no time" in one.getMessage() for one in caplog.records)


def test_a_plan_that_begins_with_a_hold_is_planned_where_a_step_follows(tmp_path) -> None:
    append(tmp_path, PLANS, plan(NOW - HOUR, status="hold", apply_at=None), plan(NOW - HOUR, index=1))
    made = PlanTables(str(tmp_path)).read_plans(NOW_S)["live", "orders"]
    assert [one.parallelism_to for one in made.steps] == [{"map": 5}]


def test_graphs_as_ingested_have_the_places_that_ingestion_knows(tmp_path) -> None:
    def keys(operator: str, **known: Any) -> dict[str, Any]:
        return {
            "cluster": "live",
            "job": "orders",
            "operator": operator,
            "observed_at": NOW - HOUR,
            "date": NOW.date(),
            "hour": NOW.hour,
        } | known

    append(
        tmp_path,
        OPERATOR_KEYS,
        keys("map", vertex_id="2" * 32, position=1, upstream=["bids"]),
        keys("bids", vertex_id="1" * 32, position=0, upstream=[]),
        keys("map", observed_at=NOW - 2 * HOUR),
    )
    assert PlanTables(str(tmp_path)).read_versions(NOW_S) == {
        ("live", "orders"): [
            (PlacedOperator("map", "", 0),),
            (PlacedOperator("bids", "1" * 32, 0), PlacedOperator("map", "2" * 32, 1, ("bids",))),
        ]
    }


def test_forecasts_are_those_of_the_plans_in_force(tmp_path) -> None:
    """A newer plan stands on a forecast that may have been in the table before; a refused one on none."""
    append(
        tmp_path,
        PLANS,
        plan(NOW - HOUR),
        plan(NOW - HOUR, "refused", status="refused", refusal="no_model", forecast_version=None),
    )
    append(tmp_path, FORECASTS, forecast_bin("a", NOW, 100.0), forecast_bin("a", NOW, 7.0, "f-1830"))
    tables = PlanTables(str(tmp_path))

    def highest(version: str) -> float | None:
        band = tables.read_forecasts(NOW_S).load_band("live", "orders", version, NOW_S)
        return None if band is None else band.q90_per_s

    assert (highest("f-1730"), highest("f-1830")) == (200.0, None)
    append(tmp_path, PLANS, plan(NOW))
    assert (highest("f-1730"), highest("f-1830")) == (None, 14.0)
