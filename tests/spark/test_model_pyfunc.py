"""What a person loads from MLflow is what plans use, and the five lines of the document run."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest

from benchmarks.pipeline.packed_models import pack_models
from include.settings import Mlflow
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from models.bundle.merging import merge_jobs
from models.capacity.conformal import Z
from models.capacity.interval_calibration import SupportRegion, find_places_of, half_widths
from spark_jobs.model_store import NOTE_TAG, ModelStore

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "models_review.md"
OLD_SCALE, NEW_SCALE = [[0.85, 1.1], [0.9, 1.2], [1.07, 1.5]], [[1.3, 1.4], [1.2, 1.9], [2.0, 2.5]]


def make_bundle(version: str, rate: float, scale: list[list[float]]) -> FleetBundle:
    grid, at = np.arange(1, 9), np.array([2, 5])
    curve = CapacityCurve(grid, rate * grid, 0.02 * rate * grid, at, rate * at, rate, 2.0, 9.0, 0.03)
    recovery = RecoveryModel(30.0, 4.0, 70.0, 9.0, 20.0, 3)
    latency = LatencyModel(np.array([0.2, 0.9]), np.array([50.0, 400.0]))
    models = {"source": 1.0, "map": 1.0}
    own = {("eu", name): JobModels({"map": curve}, models, recovery, latency) for name in ("orders", "rides")}
    made = pack_models(version, own)
    return replace(made, arrays={**made.arrays, "interval_scale": np.array(scale)})


MERGED = merge_jobs(make_bundle("new", 110.0, NEW_SCALE), {("eu", "rides"): make_bundle("old", 100.0, OLD_SCALE)})


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> ModelStore:
    root = tmp_path_factory.mktemp("pyfunc")
    store = ModelStore(Mlflow(tracking_uri=f"sqlite:///{root}/mlflow.db", artifact_root=str(root / "artifacts")))
    with warnings.catch_warnings():
        for advice in ("Add type hints to", "An input example was not"):  # of MLflow
            warnings.filterwarnings("error", f".*{advice}")
        with store.run("new", {NOTE_TAG: "note"}):
            store.log_bundle(MERGED)
    run = store.find_finished("new")
    assert run is not None
    store.make_champion(store.register(run), "2026-11-20T02:00:00Z")
    return store


@pytest.fixture(scope="module")
def model(store: ModelStore) -> mlflow.pyfunc.PyFuncModel:
    return mlflow.pyfunc.load_model(f"models:/{store.settings.registered_model}@champion")


def ask(job: str, load_per_s: float = 150.0) -> pd.DataFrame:
    grid = np.arange(1, 9)
    row = {"cluster": "eu", "job": job, "operator": "map", "parallelism": grid, "load_per_s": load_per_s}
    return pd.DataFrame(row)


@pytest.mark.parametrize("job", ["orders", "rides"])
def test_capacities_intervals_recovery_and_latency_are_those_of_plans(model, job: str) -> None:
    plans, result = MERGED.for_job("eu", job), model.predict(ask(job))
    curve, load = plans.capacity["map"], np.full(8, 150.0)
    np.testing.assert_allclose(result["mean_per_s"], curve.mean_per_s, rtol=1e-12)
    np.testing.assert_allclose(result["sd_per_s"], curve.sd_per_s, rtol=1e-12)
    for level, z in zip(("80", "95"), Z, strict=True):
        half = curve.sd_per_s * half_widths(float(z), curve.tail_ratio)
        np.testing.assert_allclose(result[f"low_{level}_per_s"], curve.mean_per_s - half, rtol=1e-12)
        np.testing.assert_allclose(result[f"high_{level}_per_s"], curve.mean_per_s + half, rtol=1e-12)
    places = [SupportRegion(one).name.lower() for one in find_places_of(curve.parallelism, curve.observed)]
    assert result["place"].tolist() == places
    assert set(places) == {"seen", "between", "beyond"}
    for kind in ("rescale", "restart"):
        assert set(result[f"downtime_{kind}_s"]) == {plans.recovery.downtime_s(kind)}
        expected = plans.recovery.recovery_s(load, curve.mean_per_s, kind=kind)
        np.testing.assert_allclose(result[f"recovery_{kind}_s"], expected, rtol=1e-12)
    np.testing.assert_allclose(result["latency_ms"], plans.latency.latency_ms(load / curve.mean_per_s), rtol=1e-12)
    assert set(result["models_from"]) == {MERGED.versions_of_jobs()["eu", job]}


def test_without_a_load_capacity_is_known_and_what_depends_on_it_is_null(model) -> None:
    result = model.predict(ask("orders").drop(columns="load_per_s"))
    assert result["mean_per_s"].notna().all()
    assert result[["utilisation", "latency_ms", "recovery_rescale_s"]].isna().all(axis=None)


def test_unknown_rows_are_named_with_the_reason(model) -> None:
    rows = (
        ask("orders")
        .head(4)
        .assign(
            job=["nobody", "orders", "orders", "orders"],
            operator=["map", "sink", "source", "map"],
            parallelism=[1, 1, 1, 99],
        )
    )
    with pytest.raises(ValueError, match="4 of 4 rows are not known to model new") as failed:
        model.predict(rows)
    for reason in (
        "eu/nobody, map: the job is in no training",
        "eu/orders, sink: the job has no such operator; it has map, source",
        "eu/orders, source: its capacity was never measured",
        "and 1 more",
    ):
        assert reason in str(failed.value)
    with pytest.raises(ValueError, match=r"parallelism 99 is not in 1\.\.8"):
        model.predict(rows.tail(1))
    nulls = model.predict(rows.assign(operator=["map", "sink", "source", "map"]), params={"unknown": "null"})
    assert (len(nulls), nulls.isna().all(axis=None)) == (4, True)


def test_the_model_has_an_example_that_it_answers(model) -> None:
    example = model.input_example
    assert model.predict(example)["place"].tolist() == ["seen"]
    assert model.metadata.signature.inputs.required_input_names() == ["cluster", "job", "operator", "parallelism"]


def test_the_five_lines_of_the_document_run(store: ModelStore, monkeypatch, capsys) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert len([line for line in code.splitlines() if line]) == 5
    assert "sqlite:///out/mlflow.db" in code
    code = code.replace("sqlite:///out/mlflow.db", store.settings.tracking_uri)
    code = code.replace("production", "eu").replace("checkout", "orders").replace('"parse"', '"map"')
    exec(compile(code, str(DOCUMENT), "exec"), {})
    assert "low_80_per_s" in capsys.readouterr().out
