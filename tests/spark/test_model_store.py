"""What a person finds in MLflow: an experiment of training runs, and descriptions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.pipeline.packed_models import pack_models
from include.settings import Mlflow
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel, RecoveryModel
from spark_jobs.model_store import GATE_TAG, NOTE_TAG, ModelStore

KIND = ("mlflow.experimentKind", "custom_model_development")  # as MLflow's pages spell it
NOTE = "Models of 1 job in one bundle."


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> ModelStore:
    root = tmp_path_factory.mktemp("mlflow")
    return ModelStore(Mlflow(tracking_uri=f"sqlite:///{root}/mlflow.db", artifact_root=str(root / "artifacts")))


def bundle() -> FleetBundle:
    grid = np.arange(1, 4)
    curve = CapacityCurve(grid, 10.0 * grid, 0.1 * grid, grid[:1], 10.0 * grid[:1], 10.0, 2.5, 10.0, 0.03)
    recovery, latency = RecoveryModel(30.0, 4.0, 60.0, 9.0, 10.0, 3), LatencyModel(np.zeros(0), np.zeros(0))
    return pack_models("v1", {("c", "orders"): JobModels({"map": curve}, {"map": 1.0}, recovery, latency)})


def test_an_experiment_holds_training_runs(store):
    assert store.find_finished("none") is None
    experiment = store.client.get_experiment_by_name(store.settings.experiment)
    assert KIND in experiment.tags.items()


def test_an_experiment_of_before_becomes_one_and_a_person_may_change_it(store):
    older = ModelStore(store.settings.model_copy(update={"experiment": "older"}))
    number = older.client.create_experiment("older")
    assert older.find_finished("none") is None
    assert KIND in older.client.get_experiment(number).tags.items()
    older.client.set_experiment_tag(number, KIND[0], "finetuning")
    assert older.find_finished("none") is None
    assert older.client.get_experiment(number).tags[KIND[0]] == "finetuning"


def test_run_version_and_model_have_descriptions(store):
    with store.run("v1", {NOTE_TAG: NOTE, GATE_TAG: "passed"}):
        store.log_bundle(bundle())
    run = store.find_finished("v1")
    assert run.data.tags["mlflow.note.content"] == NOTE
    number = store.register(run).number
    name = store.settings.registered_model
    assert store.client.get_model_version(name, str(number)).description == NOTE
    assert store.client.get_model_version(name, str(number)).tags["tidewise.gate"] == "passed"
    assert "alias `champion` names the version that plans use" in " ".join(
        store.client.get_registered_model(name).description.split()
    )


def test_the_operators_of_each_job_are_tags_of_the_model_and_go_with_it(store):
    name = store.settings.registered_model

    def read_tags() -> dict[str, str]:
        return dict(store.client.get_registered_model(name).tags)

    store.client.set_registered_model_tag(name, "team", "ours")
    one = bundle()
    store.name_operators(replace(one, index=(("c", "a job (v2)/..", ("map", "sink")),)))
    assert read_tags() == {"team": "ours", "job c/a job _v2__..": "map, sink"}
    store.name_operators(one)
    assert read_tags() == {"team": "ours", "job c/orders": "map"}
