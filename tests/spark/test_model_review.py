"""What a person says of models holds for three nights: decisions of trainings on a real registry, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from shutil import rmtree

import mlflow
import numpy as np
import pytest

from benchmarks.pipeline.packed_models import pack_models
from cli.doctor.findings import Level
from cli.doctor.storage import check_champion
from controller.view.champion import ChampionReader
from include.model_registry import CHAMPION
from include.settings import Mlflow, Settings
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel
from models.recovery.recovery_model import UNTRAINED
from models.training.gate import Gate, Verdict
from models.training.job_gate import JobVerdict, ModelChoice, apply_orders
from models.training.model_review import PINNED_TAG, REJECTED_TAG
from spark_jobs.model_acts import ModelReview, ReviewRefusedError
from spark_jobs.model_store import ModelStore
from spark_jobs.train.stage import promote, read_registry
from spark_jobs.train.train_fleet import ModelPins, choose_models

FIRST_NIGHT = datetime(2026, 11, 20, 2, tzinfo=UTC)
ORDERS, RIDES = ("eu", "orders"), ("eu", "rides")
AT = "2026-11-20T09:00:00Z"


def bundle(version: str, rate: float) -> FleetBundle:
    grid, at = np.arange(1, 5), np.array([2])
    curve = CapacityCurve(grid, rate * grid, grid * 1.0, at, rate * at, rate)
    models = JobModels({"map": curve}, {"map": 1.0}, UNTRAINED, LatencyModel(np.zeros(0), np.zeros(0)))
    return pack_models(version, {ORDERS: models, RIDES: models})


class Deployment:
    """A registry, and one training after the other."""

    def __init__(self, mlflow_settings: Mlflow) -> None:
        self.store = ModelStore(mlflow_settings)
        self.acts = ModelReview(self.store, "kim", AT, "the sink was slow")
        self._nights = count()

    def train(self, verdict: Verdict = Verdict.PASSED, worse: tuple[str, str] | None = None) -> str:
        """Decide as a training does on what it has fitted; returns why its models are not in use."""
        night = next(self._nights)
        as_of = FIRST_NIGHT + timedelta(days=night)
        known = read_registry(self.store, as_of)
        fitted = bundle(f"night-{night}", 100.0 + night)
        judged = [
            JobVerdict(job, ModelChoice.KEPT if job == worse else ModelChoice.NEW, is_worse=job == worse)
            for job in fitted.jobs()
        ]
        orders = ModelPins(known.review.orders, known.bundles)
        judged = apply_orders(judged, orders.sources)
        before = known.champion.registered
        gate = Gate(verdict if before else Verdict.FIRST, "", 50, ())
        made = choose_models(fitted, known.champion.bundle, judged, gate, orders)
        with self.store.run(made.model_version, {}):
            self.store.log_bundle(made)
        run = self.store.find_finished(made.model_version)
        assert run is not None
        result = {"gate": str(gate.verdict), "champion_before": before.model_version if before else None}
        return promote(self.store, self.store.register(run), result, "gate", as_of)

    @property
    def champion(self) -> str:
        """Model version that plans use."""
        in_use = self.store.load(CHAMPION)
        assert in_use is not None
        reader = ChampionReader(self.store.settings)
        reader.refresh()
        assert reader.model_version == in_use.model_version
        return in_use.model_version

    def versions(self) -> dict[str, str]:
        in_use = self.store.load(CHAMPION)
        assert in_use is not None
        return {job: version for (_, job), version in in_use.versions_of_jobs().items()}


@pytest.fixture
def deployment(tmp_path, request) -> Deployment:
    made = Deployment(Mlflow(tracking_uri=request.getfixturevalue("registry"), artifact_root=str(tmp_path / "files"),
                             experiment=tmp_path.name, registered_model=tmp_path.name))  # fmt: skip
    made.train()
    made.train()
    assert made.champion == "night-1"
    return made


@pytest.fixture(scope="module")
def registry(tmp_path_factory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('registry')}/mlflow.db"


def three_nights(deployment: Deployment) -> list[str]:
    return [deployment.train() for _ in range(3)]


def test_a_rejection_survives_three_nights_until_it_is_lifted(deployment: Deployment) -> None:
    done = deployment.acts.reject("2")
    assert (deployment.champion, done.champion.number if done.champion else None) == ("night-0", 1)
    for why in three_nights(deployment):
        assert why.startswith("version 2, newer than the champion, is rejected: it stays until somebody lifts that or")
    assert deployment.champion == "night-0"
    assert (
        deployment.store.client.get_model_version(deployment.store.settings.registered_model, "2").tags[
            "tidewise.review"
        ]
        == f"rejected by kim, {AT}: the sink was slow"
    )
    deployment.acts.lift("2")
    assert deployment.train() == ""
    assert deployment.champion == "night-5"


def test_a_pin_survives_three_nights_and_nothing_else_is_done_meanwhile(deployment: Deployment) -> None:
    deployment.acts.pin("1")
    assert {why.partition(":")[0] for why in three_nights(deployment)} == {"version 1 is pinned"}
    assert deployment.champion == "night-0"
    with pytest.raises(ReviewRefusedError, match="version 1 is pinned; lift that first"):
        deployment.acts.approve("3")
    deployment.acts.lift("1")
    deployment.acts.approve("3")
    assert deployment.champion == "night-2"


def test_a_rollback_survives_three_nights_whoever_made_it(deployment: Deployment) -> None:
    deployment.acts.roll_back()
    assert all(three_nights(deployment))
    assert deployment.champion == "night-0"
    deployment.acts.approve("5")
    assert (deployment.train(), deployment.champion) == ("", "night-5")
    # On MLflow's page: the alias is moved, and nothing else.
    deployment.store.client.set_registered_model_alias(deployment.store.settings.registered_model, CHAMPION, "5")
    assert three_nights(deployment)[0].startswith("somebody went back from version 6 to version 5")
    assert deployment.champion == "night-4"


def cut(bundle: Path) -> None:
    bundle.write_bytes(bundle.read_bytes()[:100])


HARMS = [Path.unlink, cut, lambda bundle: bundle.write_bytes(b""), lambda bundle: rmtree(bundle.parent.parent)]


@pytest.mark.parametrize("harm", HARMS, ids=["gone", "cut", "empty", "folder gone"])
def test_a_champion_whose_files_are_gone_is_no_person_s_act(
    deployment: Deployment, harm: Callable[[Path], object]
) -> None:
    settings = Settings(mlflow=deployment.store.settings)
    assert [one.level for one in check_champion(settings)] == [Level.OK]
    root = Path(deployment.store.settings.artifact_root)
    harm(max(root.rglob("bundle.npz"), key=lambda one: one.stat().st_mtime_ns))
    assert deployment.champion == "night-0"
    [lost] = deployment.store.read_champion().lost
    assert lost.startswith("version 2 cannot be used")
    [finding] = check_champion(settings)
    assert (finding.level, lost in finding.text) == (Level.ERROR, True)
    assert (deployment.train(), deployment.champion) == ("", "night-2")
    assert [one.level for one in check_champion(settings)] == [Level.OK]


def test_a_rejection_and_a_pin_of_one_job_survive_three_nights_and_the_other_has_new_models(
    deployment: Deployment,
) -> None:
    done = deployment.acts.reject("2", [ORDERS])
    assert done.made is not None
    assert deployment.versions() == {"orders": "night-0", "rides": "night-1"}
    assert three_nights(deployment) == ["", "", ""]
    assert deployment.versions() == {"orders": "night-0", "rides": "night-4"}
    deployment.acts.pin("2", [RIDES])
    three_nights(deployment)
    assert deployment.versions() == {"orders": "night-0", "rides": "night-1"}
    deployment.acts.lift("2", [RIDES, ORDERS])
    deployment.train()
    assert deployment.versions() == {"orders": "night-8", "rides": "night-8"}


def test_a_worse_job_keeps_its_models_night_after_night(deployment: Deployment) -> None:
    for _ in range(3):
        assert deployment.train(worse=ORDERS) == ""
    assert deployment.versions() == {"orders": "night-1", "rides": "night-4"}


@pytest.mark.parametrize("tag", [None, "tidewise.model_version"])
def test_an_alias_on_a_foreign_version_harms_nothing(deployment: Deployment, tag: str | None) -> None:
    store, name = deployment.store, deployment.store.settings.registered_model
    with mlflow.start_run(experiment_id=store._experiment_id()) as run:
        mlflow.log_text("weights", "model/weights.txt")
    foreign = store.client.create_model_version(name, f"{run.info.artifact_uri}/model", run.info.run_id)
    if tag:
        store.client.set_model_version_tag(name, foreign.version, tag, "mine")
    store.client.set_registered_model_alias(name, CHAMPION, foreign.version)
    assert store.load(CHAMPION).model_version == "night-1"  # plans go on
    champion = store.read_champion()
    problem = (champion.lost if tag else champion.problems)[0]
    assert problem.startswith("version 3 cannot be used" if tag else "alias champion names version 3, which is not of")
    assert deployment.train() == ""
    assert deployment.champion == "night-2"


def test_what_cannot_be_followed_is_said_in_a_sentence_and_changes_nothing(deployment: Deployment) -> None:
    deployment.store.set_tag(2, REJECTED_TAG, "orders, eu/")
    deployment.store.set_tag(2, PINNED_TAG, "eu/nobody")
    review, _ = deployment.store.read_orders(deployment.store.read_champion().registered)
    assert review.problems == (
        'tag tidewise.rejected of version 2: \'orders\' is neither "all" nor "cluster/job": not followed',
        'tag tidewise.rejected of version 2: \'eu/\' is neither "all" nor "cluster/job": not followed',
        "eu/nobody is pinned to version 2, which has no models of it: not followed",
    )
    assert (deployment.train(), deployment.champion) == ("", "night-2")
    for wrong, said in (
        (lambda: deployment.acts.reject("9"), "there is no version 9; there are: 1, 2, 3"),
        (lambda: deployment.acts.reject("3", [("eu", "nobody")]), "version 3 has no models of eu/nobody"),
        (lambda: deployment.acts.roll_back("3"), "version 3 is not older than the champion"),
    ):
        with pytest.raises(ReviewRefusedError, match=said):
            wrong()


def test_the_only_champion_is_not_rejected_into_nothing(deployment: Deployment) -> None:
    deployment.acts.roll_back()
    with pytest.raises(ReviewRefusedError, match="no version before 1 was champion"):
        deployment.acts.reject("1")
    assert deployment.champion == "night-0"


def test_going_back_from_a_version_that_was_made_for_one_job_does_not_bring_its_models_back(
    deployment: Deployment,
) -> None:
    deployment.acts.reject("2", [ORDERS])  # makes version 3
    done = deployment.acts.roll_back("2")
    assert done.champion is not None
    assert (done.champion.number, deployment.champion) == (4, done.champion.model_version)
    assert deployment.versions() == {"orders": "night-0", "rides": "night-1"}
