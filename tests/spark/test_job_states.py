"""Jobs that initialise, end, come again or are deployed under other names: what ingestion and the plan make of each."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from benchmarks.pipeline.packed_models import pack_models
from include.domain.operator_matching import PlacedOperator
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.tables import FORECASTS, JOB_GRAPHS, JOBS, OBSERVATIONS, OPERATOR_KEYS, PLANS, QUARANTINE, RESCALES
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel
from models.recovery.recovery_model import UNTRAINED
from spark_jobs.forecast import stage as forecast
from spark_jobs.plan.build_plan import build_plan, current_versions
from spark_jobs.source_inputs.renames import follow_renames, read_renames
from tests.spark.deployments import AFTER, BEFORE, HOURS, IDS, NAMES, START, UPSTREAM
from tests.spark.ingested_lake import IngestedLake
from tests.spark.situations import Situations

pytestmark = pytest.mark.spark

END = START + timedelta(hours=HOURS)


@pytest.fixture(scope="module")
def told(situations: Situations) -> IngestedLake:
    lake, settings = situations.lake, situations.settings
    forecast.run(lake.spark, settings, StageRequest(Stage.FORECAST, END))
    made = build_plan(lake, settings, END, bundle(), current_versions(lake))
    lake.replace(PLANS, made.plans, "true")
    return situations


def bundle() -> FleetBundle:
    """Models of ``plain``, ``snapshot`` and, under its former names, ``numbered``."""
    grid = np.arange(1.0, 129.0)
    models = {}
    for cluster, names in (("plain", NAMES), ("snapshot", NAMES), ("numbered", BEFORE)):
        curves = {name: curve(grid, 300.0 if key == "2" else 900.0) for key, name in names.items()}
        models[cluster, "orders"] = JobModels(
            curves, dict.fromkeys(curves, 1.0), UNTRAINED, LatencyModel(grid[:0], grid[:0])
        )
    made = pack_models("v1", models)
    placed = tuple(
        PlacedOperator(name, IDS[key], at, tuple(BEFORE[one] for one in UPSTREAM[key]))
        for at, (key, name) in enumerate(BEFORE.items())
    )
    return FleetBundle(made.model_version, made.index, made.arrays, {("numbered", "orders"): placed})


def curve(grid, per_slot: float) -> CapacityCurve:
    return CapacityCurve(
        grid.astype(int), grid * per_slot, grid * 5.0, grid[:1].astype(int), grid[:1] * per_slot, per_slot
    )


def plan_of(told: IngestedLake, cluster: str):
    rows = told.rows(PLANS, cluster)
    assert rows, f"{cluster} has no row"
    return min(rows, key=lambda row: row["step_index"])


def test_every_deployment_of_an_hour_is_kept_with_its_names(told: IngestedLake) -> None:
    result = {(row["operator"], row["vertex_id"][0]) for row in told.rows(OPERATOR_KEYS, "numbered")}
    assert result == {(name, one) for names in (BEFORE, AFTER) for one, name in names.items()}


def test_history_follows_the_vertex_id_where_a_name_passed_to_another_operator(told: IngestedLake) -> None:
    renames = read_renames(told.lake, START, END)
    history = follow_renames(told.lake.read(OBSERVATIONS).where("cluster = 'numbered'"), renames)
    result = {(row["operator"], row["vertex_id"][0]) for row in history.collect()}
    assert result == {(name, one) for one, name in AFTER.items()}


def test_a_job_that_was_deployed_again_keeps_its_models_and_its_forecast(told: IngestedLake) -> None:
    row = plan_of(told, "numbered")
    assert row["refusal"] is None, row["reason"]
    assert set(row["parallelism_to"]) == set(AFTER.values())
    assert 150 < row["expected_capacity_per_s"] < 1000  # Calc[3] is what Calc[2] was: 300/s


def test_the_graph_of_a_job_that_was_first_polled_while_it_initialised_is_read(told: IngestedLake) -> None:
    assert {row["operator"] for row in told.rows(JOB_GRAPHS, "initialises")} == set(NAMES.values())
    assert told.rows(QUARANTINE, "initialises") == []


def test_a_job_without_a_graph_has_a_row_that_says_so(told: IngestedLake) -> None:
    assert plan_of(told, "no_graph")["refusal"] == "no_graph"


@pytest.mark.parametrize(
    ("cluster", "kinds"),
    [
        ("batch", []),
        ("quick_batch", []),
        ("savepoint", ["upgrade"]),
        ("untold", ["upgrade"]),
        ("cancelled", ["upgrade"]),
        ("given_up", []),
        ("vanished", ["upgrade"]),
    ],
)
def test_an_end_is_no_stop_and_a_deployment_is_one(told: IngestedLake, cluster: str, kinds: list[str]) -> None:
    assert [row["cause_kind"] for row in told.rows(RESCALES, cluster)] == kinds


@pytest.mark.parametrize("cluster", ["batch", "quick_batch"])
def test_a_job_that_has_ended_is_not_planned(told: IngestedLake, cluster: str) -> None:
    (row,) = [row for row in told.rows(JOBS, cluster) if row["hour"] == (12 if cluster == "batch" else 11)]
    assert (row["state"], row["ended_at"] is not None) == ("FINISHED", True)
    assert plan_of(told, cluster)["refusal"] == "job_ended"
    assert told.rows(FORECASTS, cluster) == []


def test_a_batch_job_is_named_and_left_alone(told: IngestedLake) -> None:
    assert plan_of(told, "typed")["refusal"] == "batch_job"
    assert told.rows(FORECASTS, "typed") == []


def test_a_finished_source_is_no_part_of_the_load(told: IngestedLake) -> None:
    row, twin = plan_of(told, "snapshot"), plan_of(told, "plain")
    assert {one["operator"] for one in told.rows(FORECASTS, "snapshot")} == {"Source: orders"}
    assert row["refusal"] is None, row["reason"]
    # Each is learnt from its own windows; the finished source would have doubled it.
    assert row["expected_load_q90_per_s"] == pytest.approx(twin["expected_load_q90_per_s"], rel=0.02)
    assert set(row["parallelism_to"]) == set(NAMES.values())


def test_a_job_that_no_training_saw_is_refused_for_that(told: IngestedLake) -> None:
    row = plan_of(told, "cancelled")
    assert row["refusal"] == "no_model"
    assert "busy time was never measured" not in row["reason"]


def test_windows_in_which_tasks_were_restored_are_disturbed(told: IngestedLake) -> None:
    rows = told.rows(OBSERVATIONS, "restoring")
    disturbed = {row["window_start"].minute for row in rows if row["disturbed"] and row["hour"] == 12}
    assert disturbed == {0, 1, 2, 3, 4, 5}
