"""Plans, memories and models of a job that was deployed again under other names of its operators."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.pipeline.packed_models import pack_models
from controller.evaluation.evaluate_job import evaluate_job
from controller.memory.stored_memories import StoredMemories
from controller.view.job_view import EvaluationState
from controller.view.present_names import follow_kept, follow_plan
from include.domain.graph import JobGraph, Operator
from include.domain.operator_matching import PlacedOperator
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel
from models.policies.evaluation.window_memory import WindowMemory
from models.policies.renamed_memory import find_operators, rename_operators
from models.recovery.recovery_model import UNTRAINED
from tests.unit.test_bundle import assert_same
from tests.unit.test_evaluation import FALL, NOW_S, SETTINGS, kept, plan, planned, seen, step, view, windows

BEFORE = (PlacedOperator("source", "1" * 32, 0), PlacedOperator("map", "2" * 32, 1, ("source",)))
# "map" passed to the source, by chance
AFTER = (PlacedOperator("map", "1" * 32, 0), PlacedOperator("map[2]", "2" * 32, 1, ("map",)))
NAMES = {"source": "map", "map": "map[2]"}


def renamed_job():
    graph = JobGraph.from_operators([Operator("map", (), 128), Operator("map[2]", ("map",), 128)])
    ids = {one.name: one.vertex_id for one in AFTER}
    return seen(running={"map": 1, "map[2]": 4}, vertex_ids=ids, graph=graph, placed=AFTER)


def test_the_steps_of_a_plan_follow_the_vertex_ids():
    made = follow_plan(plan(step()), [BEFORE], AFTER)
    assert made.steps[0].parallelism_to == {"map": 1, "map[2]": 2}
    assert follow_plan(plan(step()), [BEFORE], BEFORE) == plan(step())
    assert follow_plan(plan(step()), [BEFORE], ()) == plan(step())


def test_a_plan_that_was_made_after_the_deployment_stays():
    made = follow_plan(plan(step()), [BEFORE], AFTER)
    assert follow_plan(made, [BEFORE, AFTER], AFTER) == made


def test_what_was_kept_follows_the_vertex_ids_also_after_a_restart(tmp_path):
    due = evaluate_job(
        view(seen=seen(placed=BEFORE), observations=windows(800.0), **planned(FALL)), EvaluationState(), SETTINGS, NOW_S
    )
    assert due.standing is not None
    assert due.standing.wanted == {"source": 1, "map": 2}
    memories = StoredMemories(str(tmp_path))
    memories.append({("c", "orders"): due}, NOW_S)
    read = memories.read([("c", "orders")], NOW_S)["c", "orders"]
    assert read.operators == BEFORE
    followed = follow_kept(read, AFTER)
    assert followed.standing is not None
    assert followed.standing.wanted == {"map": 1, "map[2]": 2}
    later = follow_plan(plan(step()), [BEFORE], AFTER)
    known = view(seen=renamed_job(), observations=windows(800.0), plan=later)
    again = evaluate_job(known, read, SETTINGS, NOW_S)
    assert again.standing is not None
    assert again.standing.wanted == {"map": 1, "map[2]": 2}


def test_what_is_held_of_an_operator_that_has_gone_is_left_out():
    memory = WindowMemory(shares={"map": 0.5, "source": 1.0})
    assert find_operators(memory, {"map", "other"}) == {"map"}
    assert rename_operators(memory, {"source": "bids"}, {"map", "source"}).shares == {"bids": 1.0}


def test_a_batch_job_is_left_alone():
    result = evaluate_job(
        view(seen=seen(job_type="BATCH"), observations=windows(800.0), **planned(FALL)), kept(), SETTINGS, NOW_S
    )
    assert result.standing is None


@pytest.fixture
def models() -> JobModels:
    grid = np.arange(1, 5)
    curve = CapacityCurve(grid, 300.0 * grid, 5.0 * grid, grid[:1], 300.0 * grid[:1], 300.0, 2.0, 1.0, 0.1)
    latency = LatencyModel(np.zeros(0), np.zeros(0))
    return JobModels({"map": curve}, {"source": 1.0, "map": 0.5}, UNTRAINED, latency)


def test_models_are_given_by_present_names(models):
    bundle = pack_models("v1", {("c", "orders"): models})
    made = FleetBundle.from_bytes(replace(bundle, placed={("c", "orders"): BEFORE}).to_bytes())
    assert made.placed == {("c", "orders"): BEFORE}
    for result in (
        made.for_job("c", "orders", AFTER),
        made.with_names_of({("c", "orders"): AFTER}).for_job("c", "orders"),
    ):
        assert result.selectivity == {"map": 1.0, "map[2]": 0.5}
        assert result.capacity.keys() == {"map[2]"}
    assert_same(made.for_job("c", "orders"), models)


def test_models_of_an_operator_that_has_gone_are_no_other_ones(models):
    made = replace(pack_models("v1", {("c", "orders"): models}), placed={("c", "orders"): BEFORE})
    alone = (PlacedOperator("map", "1" * 32, 0),)
    assert "map" not in made.for_job("c", "orders", alone).capacity


def test_a_bundle_of_an_earlier_release_is_read_by_its_own_names(models):
    bundle = pack_models("v1", {("c", "orders"): models})
    with np.load(io.BytesIO(bundle.to_bytes())) as archive:
        header = json.loads(archive["header"].tobytes())
    del header["placed"]
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **bundle.arrays, header=np.frombuffer(json.dumps(header).encode(), np.uint8))
    assert_same(FleetBundle.from_bytes(buffer.getvalue()).for_job("c", "orders", AFTER), models)
