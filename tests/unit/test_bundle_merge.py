"""A bundle in which some jobs have the models of other versions: exactly those, and all others as they were."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.pipeline.packed_models import pack_models
from models.bundle.fleet_bundle import FleetBundle, JobKey
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from models.bundle.merging import merge_jobs

SCALE = {"old": [[1.1, 1.4], [1.2, 1.5], [2.0, 2.5]], "new": [[0.9, 1.0], [1.0, 1.3], [1.5, 2.2]]}


def models(rate: float, names: tuple[str, ...]) -> JobModels:
    grid, at = np.arange(1, 4 + len(names)), np.array([2, 3])
    curves = {name: CapacityCurve(grid, rate * grid, 0.1 * rate * grid, at, rate * at, rate) for name in names[1:]}
    edges = dict.fromkeys(pairwise(names), rate)
    latency = LatencyModel(np.array([0.2, 0.8]), np.array([rate, 2 * rate]))
    return JobModels(curves, dict.fromkeys(names, 1.0), RecoveryModel(rate, 1.0, 90.0, 1.0, 10.0, 3), latency, edges)


def bundle(version: str, jobs: dict[str, tuple[float, tuple[str, ...]]]) -> FleetBundle:
    made = pack_models(version, {("eu", name): models(*one) for name, one in sorted(jobs.items())})
    return replace(made, arrays={**made.arrays, "interval_scale": np.array(SCALE[version])})


OLD = bundle("old", {"a": (10.0, ("source", "map")), "b": (20.0, ("source", "map", "sink")), "c": (30.0, ("source",))})
NEW = bundle("new", {"a": (11.0, ("source", "map")), "b": (21.0, ("source", "sink")), "d": (41.0, ("source", "map"))})


def assert_same(merged: FleetBundle, source: FleetBundle, job: JobKey) -> None:
    ours, theirs = merged.for_job(*job), source.for_job(*job)
    assert (ours.selectivity, ours.edges) == (theirs.selectivity, theirs.edges)
    np.testing.assert_equal([*vars_of(ours.recovery)], [*vars_of(theirs.recovery)])
    np.testing.assert_equal(ours.latency.latency_at_knots_ms, theirs.latency.latency_at_knots_ms)
    assert ours.capacity.keys() == theirs.capacity.keys()
    for name, curve in ours.capacity.items():
        np.testing.assert_equal([*vars_of(curve)], [*vars_of(theirs.capacity[name])])


def vars_of(one: object) -> list[object]:
    return [getattr(one, each.name) for each in fields(one)]  # type: ignore[arg-type]


def test_a_job_has_exactly_the_models_of_its_source_and_others_have_their_own() -> None:
    merged = FleetBundle.from_bytes(merge_jobs(NEW, {("eu", "b"): OLD}).to_bytes())
    assert merged.model_version == "new"
    assert_same(merged, OLD, ("eu", "b"))
    assert_same(merged, NEW, ("eu", "a"))
    assert_same(merged, NEW, ("eu", "d"))
    assert merged.versions_of_jobs() == {("eu", "a"): "new", ("eu", "b"): "old", ("eu", "d"): "new"}


def test_a_job_taken_twice_is_still_of_the_version_that_made_it() -> None:
    once = merge_jobs(NEW, {("eu", "b"): OLD})
    third = FleetBundle(model_version="third", index=NEW.index, arrays=NEW.arrays)
    again = merge_jobs(third, {("eu", "b"): once, ("eu", "a"): once})
    assert again.versions_of_jobs() == {("eu", "a"): "new", ("eu", "b"): "old", ("eu", "d"): "third"}
    assert_same(again, OLD, ("eu", "b"))
    assert_same(again, NEW, ("eu", "a"))


def test_a_job_is_left_out_or_added() -> None:
    merged = merge_jobs(NEW, {("eu", "a"): None, ("eu", "c"): OLD, ("eu", "d"): OLD})
    assert merged.jobs() == (("eu", "b"), ("eu", "c"))  # OLD has no models of d
    assert_same(merged, OLD, ("eu", "c"))
    assert merge_jobs(NEW, dict.fromkeys(NEW.jobs())).jobs() == ()


def test_nothing_taken_is_the_same_bundle() -> None:
    assert merge_jobs(NEW, {}) is NEW
    assert merge_jobs(NEW, {("eu", "a"): NEW}) is NEW


@pytest.mark.parametrize("left", ["edge_count", "interval_scale"])
def test_a_source_of_an_earlier_release_has_less(left: str) -> None:
    dropped = {"edge_count", "edge_ends", "edge_ratio"} if left == "edge_count" else {left}
    arrays = {name: values for name, values in OLD.arrays.items() if name not in dropped}
    arrays["recovery"] = arrays["recovery"][:, :6]
    older = FleetBundle("old", OLD.index, arrays)
    assert_same(merge_jobs(NEW, {("eu", "b"): older}), older, ("eu", "b"))
