"""The simulated replica of a job, the rates at which it is profiled, and its profile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from include.domain.graph import JobGraph, Operator
from include.settings import Planner, Profiling
from lab.profiling.journal import Journal
from lab.profiling.profiling import profile, profiling_options
from lab.simulation.profiling_adapter import SimulatedProfiling
from lab.simulation.simulated_replica import AT_THE_SOURCES, build_replica
from lab.simulation.spec import SpecError
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel

SLOTS = 8
GRAPH = JobGraph(
    (Operator("source"), Operator("map", ("source",)), Operator("window", ("map",), max_parallelism=6)),
)
P = np.arange(1, SLOTS + 1)
# `map` scales less than linearly: 1000 records/s of the first instance, less of each further one.
MAP_PER_S = 1000.0 * P / (1.0 + 0.05 * (P - 1))


def curve(mean: np.ndarray) -> CapacityCurve:
    return CapacityCurve(P, mean, 0.0 * mean, P.copy(), mean, float(mean[0]))


MODELS = JobModels(
    {"map": curve(MAP_PER_S), "window": curve(900.0 * P)},
    {"source": 1.0, "map": 0.5, "window": float("nan")},
    RecoveryModel(20.0, 2.0, 35.0, 4.0, 60.0, 5),
    LatencyModel(np.array([0.1, 0.9]), np.array([120.0, 900.0])),
)


def test_the_replica_does_what_the_models_say():
    spec = build_replica("orders", GRAPH, MODELS, SLOTS, Planner())
    by_name = {operator.name: operator for operator in spec.operators}
    assert by_name["map"].measured_per_s == pytest.approx(MAP_PER_S)
    assert spec.edge_ratios["map", "window"] == 0.5
    assert by_name["window"].max_parallelism == 6
    assert spec.output_ratios["window"] == 1.0  # never observed
    assert min(by_name["source"].measured_per_s) > 100 * MAP_PER_S.max()  # no model: never the bottleneck
    assert (spec.restart_base_s, spec.detection_s, spec.checkpoint_interval_s) == (20.0, 15.0, 60.0)
    assert spec.fetch_delay_s == pytest.approx(0.12)


def test_a_job_without_any_model_has_no_replica():
    with pytest.raises(SpecError, match="no operator has a capacity model"):
        build_replica("orders", GRAPH, replace(MODELS, capacity={}), SLOTS, Planner())


def test_the_replica_has_the_ratio_of_each_edge_and_does_not_guess_one():
    graph = JobGraph((*GRAPH.operators, Operator("late", ("map",))))
    edges = {("map", "window"): 0.45, ("map", "late"): 0.05}
    spec = build_replica("orders", graph, replace(MODELS, edges=edges), SLOTS, Planner())
    assert spec.edge_ratios == {("source", "map"): 1.0, **edges}
    assert spec.output_ratios["map"] == pytest.approx(0.5)
    with pytest.raises(SpecError, match="map to late is not known"):
        build_replica("orders", graph, replace(MODELS, edges={**edges, ("map", "late"): np.nan}), SLOTS, Planner())


@pytest.mark.parametrize("slots_max", [1, 2, 8, 64])
def test_ranges_stay_within_the_slots_and_reach_three_times_the_peak(slots_max):
    settings = Profiling()
    options = profiling_options(settings, slots_max, 500.0)
    assert 1 <= min(options.samples()) <= max(options.samples()) <= slots_max
    assert options.first_rate_per_s * settings.rate_steps == pytest.approx(500.0 * slots_max)
    assert options.first_rate_per_s + (options.steps_max - 1) * options.rate_step_per_s == pytest.approx(
        3 * 500.0 * slots_max
    )


@pytest.mark.parametrize("load", [0.0, float("nan")])
def test_without_load_there_is_nothing_to_replay(load):
    with pytest.raises(ValueError, match="no load"):
        profiling_options(Profiling(), SLOTS, load)


def test_the_replica_is_profiled_to_its_capacity_and_every_step_is_recorded():
    spec = build_replica("orders", GRAPH, MODELS, SLOTS, Planner())
    options = profiling_options(Profiling(settle_s=60, window_s=30), SLOTS, 500.0)
    journal = Journal(SimulatedProfiling(spec, AT_THE_SOURCES, seed=7))
    result = profile(journal, options)
    for point in result.capacity:
        assert point.capacity_per_s == pytest.approx(MAP_PER_S[point.scale_out - 1], rel=0.02)
    steps = [entry for entry in journal.entries if entry.kind == "step"]
    assert [(one.scale_out, one.throughput_per_s, one.latency_ms) for one in steps] == [
        (row.scale_out, row.throughput_per_s, row.latency_ms) for row in result.rows
    ]
    assert all(one.rate_per_s == pytest.approx(500.0 * SLOTS / 20 * (one.step + 1)) for one in steps)
    keys = [(entry.kind, entry.step, entry.scale_out) for entry in journal.entries]
    assert len(set(keys)) == len(keys)
    # A deployment is stopped when its latency leaves that of the others, which is near its capacity.
    for scale_out in options.samples():
        last = max(one.rate_per_s for one in steps if one.scale_out == scale_out)
        assert last == pytest.approx(MAP_PER_S[scale_out - 1], rel=0.2)
    again = Journal(SimulatedProfiling(spec, AT_THE_SOURCES, seed=7))
    assert profile(again, options) == result
