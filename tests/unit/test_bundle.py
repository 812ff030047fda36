"""FleetBundle: what goes in comes out, and damage is refused by name."""

import io
import json
import pickle
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest

from benchmarks.pipeline.packed_models import pack_models
from models.bundle.fleet_bundle import BundleError, FleetBundle
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel, closed_form_recovery_s


def curve(slope: float, top: int, seen: list[int]) -> CapacityCurve:
    grid = np.arange(1, top + 1)
    at = np.array(seen)
    return CapacityCurve(grid, slope * grid, 0.1 * grid, at, slope * at, slope, 2.5, 10.0, 0.03)


@pytest.fixture
def models() -> dict[tuple[str, str], JobModels]:
    recovery = RecoveryModel(30.0, 4.0, 60.0, 9.0, 10.0, 3)
    latency = LatencyModel(np.array([0.2, 0.9]), np.array([5.0, 80.0]))
    silent = LatencyModel(np.zeros(0), np.zeros(0))
    return {
        ("eu", "rides"): JobModels(
            {"map": curve(10.0, 8, [1, 2]), "sink": curve(7.0, 3, [2])},
            {"source": 1.0, "map": 0.5, "sink": 0.0},
            recovery,
            latency,
            {("source", "map"): 0.25, ("map", "sink"): float("nan")},
        ),
        ("us", "rides"): JobModels({"map": curve(3.0, 5, [1, 4, 5])}, {"map": 2.0}, recovery, silent),
    }


def assert_same(found: JobModels, expected: JobModels) -> None:
    assert found.selectivity == expected.selectivity
    assert found.edges == pytest.approx(dict(expected.edges), nan_ok=True)
    assert found.recovery == expected.recovery
    np.testing.assert_array_equal(found.latency.knots, expected.latency.knots)
    np.testing.assert_array_equal(found.latency.latency_at_knots_ms, expected.latency.latency_at_knots_ms)
    assert found.capacity.keys() == expected.capacity.keys()
    for name, wanted in expected.capacity.items():
        observed = found.capacity[name]
        for field in ("parallelism", "mean_per_s", "sd_per_s", "observed", "observed_per_s"):
            np.testing.assert_array_equal(getattr(observed, field), getattr(wanted, field))
        assert (observed.slope_per_s, observed.length_scale, observed.signal_ratio, observed.noise_share) == (
            wanted.slope_per_s,
            wanted.length_scale,
            wanted.signal_ratio,
            wanted.noise_share,
        )


def test_a_bundle_of_the_release_before_has_no_edges(models: dict[tuple[str, str], JobModels]) -> None:
    bundle = pack_models("v1", models)
    retained = {name: array for name, array in bundle.arrays.items() if not name.startswith("edge_")}
    assert FleetBundle("v0", bundle.index, retained).for_job("eu", "rides").edges == {}


def test_models_survive_bytes_and_pickle(models: dict[tuple[str, str], JobModels]) -> None:
    bundle = pack_models("v1", models)
    for copy in (bundle, FleetBundle.from_bytes(bundle.to_bytes()), pickle.loads(pickle.dumps(bundle))):
        assert copy.model_version == "v1"
        assert copy.jobs() == tuple(models)
        for key, expected in models.items():
            assert_same(copy.for_job(*key), expected)


def test_bytes_are_a_function_of_the_models(models: dict[tuple[str, str], JobModels]) -> None:
    assert pack_models("v1", models).to_bytes() == pack_models("v1", models).to_bytes()


def test_operators_stand_in_the_order_of_the_arrays(models: dict[tuple[str, str], JobModels]) -> None:
    bundle = pack_models("v1", models)
    assert bundle.operators()[2:] == [("eu", "rides", "sink"), ("us", "rides", "map")]
    assert bundle.arrays["grid_count"].tolist() == [0, 8, 3, 5]


def test_unknown_job_and_damaged_archive_are_refused_by_name(models: dict[tuple[str, str], JobModels]) -> None:
    bundle = pack_models("v1", models)
    with pytest.raises(BundleError, match="'orders' of cluster 'eu' is not in model v1"):
        bundle.for_job("eu", "orders")
    for damaged in (b"", b"no archive", bundle.to_bytes()[:200]):
        with pytest.raises(BundleError, match="train again"):
            FleetBundle.from_bytes(damaged)
    arrays = {name: values for name, values in bundle.arrays.items() if name != "knots"}
    with pytest.raises(BundleError, match="knots"):
        FleetBundle("v1", bundle.index, arrays)


def _packed(header: object, arrays: dict[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    np.savez_compressed(buffer, header=np.frombuffer(text, np.uint8), **arrays)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "header",
    [{}, [], 3, None, "text", {"index": 3}, {"index": [["eu", "rides"]]}, {"index": [[1, 2, None]]},
     {"index": [], "model_version": "v", "placed": [[1]]}, {"index": [], "model_version": "v", "placed": 7},
     b"[" * 100_000, b"\xff"],
)  # fmt: skip
@pytest.mark.covers("harm bundle-damaged")
def test_whatever_the_header_holds_is_told_as_a_damaged_bundle(models, header) -> None:
    with pytest.raises(BundleError, match=r"not a bundle of models: .*train again"):
        FleetBundle.from_bytes(_packed(header, dict(pack_models("v1", models).arrays)))


@pytest.mark.parametrize(
    ("name", "values"),
    [("grid_count", [-1, 8, 3, 5]), ("grid_count", [0.0, 8.0, 3.0, 5.0]), ("observed", []), ("recovery", 1.0),
     ("operator_count", [1, 2, 1]), ("knot_count", [10**12, 0])],
)  # fmt: skip
@pytest.mark.covers("harm bundle-damaged")
def test_arrays_that_do_not_fit_together_are_told_as_a_damaged_bundle(models, name, values) -> None:
    bundle = pack_models("v1", models)
    header = {"model_version": "v1", "index": bundle.index}
    FleetBundle.from_bytes(_packed(header, dict(bundle.arrays)))
    with pytest.raises(BundleError, match=r"not a bundle of models: .*train again"):
        FleetBundle.from_bytes(_packed(header, {**bundle.arrays, name: np.array(values)}))


def test_a_damaged_stream_is_told_as_a_damaged_bundle(models) -> None:
    content = bytearray(pack_models("v1", models).to_bytes())
    for at in range(40, len(content), 97):
        damaged = bytes(content[:at]) + bytes(8) + bytes(content[at + 8 :])
        with suppress(BundleError):
            FleetBundle.from_bytes(damaged)


@pytest.mark.covers("harm bundle-damaged")
def test_a_bundle_that_would_expand_a_thousand_times_is_refused_unread(models) -> None:
    bundle = pack_models("v1", models)
    bomb = _packed({"model_version": "v1", "index": bundle.index}, {**bundle.arrays, "more": np.zeros(10**7)})
    tracemalloc.start()
    try:
        with pytest.raises(BundleError, match="would expand to"):
            FleetBundle.from_bytes(bomb)
        assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    finally:
        tracemalloc.stop()


def test_an_empty_fleet_has_no_jobs() -> None:
    assert FleetBundle.from_bytes(pack_models("v0", {}).to_bytes()).jobs() == ()


def test_recovery_is_phoebes_closed_form() -> None:
    """Phoebe: T = 200 K, load 50 K, I = 10 s, D = 110 s give 150 s (the iteration's own result)."""
    model = RecoveryModel(30.0, 1.0, 110.0, 1.0, 10.0, 5)
    assert model.recovery_s(50e3, 200e3, kind="restart") == pytest.approx(150.0)
    assert model.recovery_s(50e3, 200e3, kind="rescale") == pytest.approx(30 + 50 * 30 / 150)
    np.testing.assert_allclose(
        model.recovery_s([0.0, 50e3, 200e3, 3e5], 200e3, kind="restart"), [110, 150, np.inf, np.inf]
    )
    assert closed_form_recovery_s([10.0, 20.0], 0.0, 1.0, 2.0).tolist() == [20.0, 40.0]


def test_latency_is_flat_beyond_its_knots_and_unknown_without() -> None:
    model = LatencyModel(np.array([0.2, 0.8]), np.array([10.0, 70.0]))
    np.testing.assert_allclose(model.latency_ms([0.0, 0.5, 2.0]), [10.0, 40.0, 70.0])
    assert np.isnan(LatencyModel(np.zeros(0), np.zeros(0)).latency_ms([0.5])).all()
