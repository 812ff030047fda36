"""`tidewise models`: the five commands of the document, on a registry of two trainings, and what they leave behind."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from page_commands import find_commands, read_page

from benchmarks.pipeline.packed_models import pack_models
from cli import models as command
from include.control.interventions import UserAction
from include.lake_table import LakeTable
from include.settings import load_settings
from include.tables import INTERVENTIONS, MODEL_JOBS, MODEL_VERSIONS
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel
from models.recovery.recovery_model import UNTRAINED
from spark_jobs.model_store import NOTE_TAG, ModelStore, load_bundle

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "models_review.md"
NIGHT = datetime(2026, 11, 20, 2, tzinfo=UTC)
EVER = datetime(2026, 1, 1).date(), datetime(2100, 1, 1).date()


def bundle(version: str, rate: float) -> FleetBundle:
    grid, at = np.arange(1, 5), np.array([2])
    curve = CapacityCurve(grid, rate * grid, grid * 1.0, at, rate * at, rate)
    models = JobModels({"map": curve}, {"map": 1.0}, UNTRAINED, LatencyModel(np.zeros(0), np.zeros(0)))
    return pack_models(version, {("eu", "orders"): models, ("eu", "rides"): models})


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    """What two trainings leave: two versions that were champion, and their rows."""
    root = tmp_path_factory.mktemp("out")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in command_environment(root).items():
            patch.setenv(name, value)
        settings = load_settings()
        store = ModelStore(settings.mlflow)
        for night, rate in enumerate((100.0, 110.0)):
            made, as_of = bundle(f"night-{night}", rate), NIGHT + timedelta(days=night)
            with store.run(made.model_version, {NOTE_TAG: f"Night {night}.", "tidewise.gate": "passed"}):
                store.log_bundle(made)
            run = store.find_finished(made.model_version)
            assert run is not None
            store.make_champion(store.register(run), f"{as_of:%FT%TZ}")
            row = dict.fromkeys(MODEL_VERSIONS.columns)
            own = {"as_of": as_of, "model_version": made.model_version, "gate": "passed", "compared": 50, "jobs": 2}
            LakeTable(settings.paths.lake, MODEL_VERSIONS).append([row | own])
    return root


def command_environment(root: Path) -> dict[str, str]:
    from cli.embedded import below

    return below(root)


def ask(capsys: pytest.CaptureFixture[str], out: Path, *argv: str) -> tuple[int, str]:
    capsys.readouterr()
    code = command.main([*argv, "--out", str(out), "--by", "kim"])
    shown = capsys.readouterr()
    return code, shown.out + shown.err


def commands() -> list[list[str]]:
    """Return the arguments of the document's commands."""
    (block,) = re.findall(r"```sh\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    lines = [shlex.split(line) for line in block.splitlines()]
    assert all(line[:2] == ["tidewise", "models"] for line in lines)
    return [line[2:] for line in lines]


def test_the_five_commands_of_the_document(out: Path, capsys, monkeypatch) -> None:
    for name, value in command_environment(out).items():
        monkeypatch.setenv(name, value)  # the command sets them for its process
    listed, shown, compared, rejected, back = commands()
    code, text = ask(capsys, out, *listed)
    assert code == 0
    assert re.search(r"2  night-1 +passed +champion", text)
    assert "Night 1." in ask(capsys, out, *shown)[1]
    assert "eu/orders: +10.0%" in ask(capsys, out, *compared)[1]

    settings = load_settings()
    code, text = ask(capsys, out, *[one for one in rejected if one != "--yes"])
    assert (code, load_bundle(settings).model_version) == (0, "night-1")
    assert "nothing was done; to do it: tidewise models reject 2 --job eu/orders --yes --reason ..." in text

    code, text = ask(capsys, out, *rejected)
    in_use = load_bundle(settings)
    assert (code, in_use.versions_of_jobs()) == (0, {("eu", "orders"): "night-0", ("eu", "rides"): "night-1"})
    assert f"in use: version 3 ({in_use.model_version})" in text
    columns = ("model_version", "gate", "champion_before", "compared")
    rows = LakeTable(settings.paths.lake, MODEL_VERSIONS).read(columns, *EVER).to_pylist()
    own = (in_use.model_version, "reviewed", "night-1", 50)
    assert dict(zip(columns, own, strict=True)) in rows
    of_jobs = LakeTable(settings.paths.lake, MODEL_JOBS).read(("job", "models_from"), *EVER).to_pylist()
    assert {one["job"]: one["models_from"] for one in of_jobs} == {"orders": "night-0", "rides": "night-1"}
    assert "eu/orders has models of night-0" in ask(capsys, out, "show")[1]

    code, text = ask(capsys, out, *back)
    assert (code, load_bundle(settings).model_version) == (0, "night-0")
    assert "back from version 3 to 1 until lifted\nin use: version 1 (night-0)" in text
    assert "rejected by kim" in ask(capsys, out, "list")[1]
    done = LakeTable(settings.paths.lake, INTERVENTIONS).read(("act", "scope", "by", "reason"), *EVER).to_pylist()
    assert sorted((one["act"], one["scope"], one["by"], one["reason"]) for one in done) == [
        (UserAction.REJECT_MODEL, "eu/orders", "kim", "too slow since Friday"),
        (UserAction.ROLL_BACK_MODEL, "all", "kim", "night of the outage"),
    ]


def test_the_row_of_models_for_the_night_goes_back_and_lifts_it_again(out: Path, capsys, monkeypatch) -> None:
    for name, value in command_environment(out).items():
        monkeypatch.setenv(name, value)
    (row,) = [line for line in read_page("on_call").splitlines() if line.startswith("| the plan is odd")]
    listed, compared, back, lifted = find_commands(row)
    assert ask(capsys, out, "approve", "2", "--yes", "--reason", "as after a night")[0] == 0
    assert [listed.run({}, "--out", str(out)), compared.run({"3": "2"}, "--out", str(out))] == [0, 0]
    in_use = load_bundle(load_settings()).model_version
    assert back.run({}, "--out", str(out)) == 0
    assert load_bundle(load_settings()).model_version != in_use
    rejected = re.findall(r"back from version (\d+) to", capsys.readouterr().out)[0]
    assert lifted.run({"3": rejected}, "--out", str(out)) == 0


def test_an_operator_is_found_by_the_names_of_its_job(out: Path, capsys, monkeypatch) -> None:
    for name, value in command_environment(out).items():
        monkeypatch.setenv(name, value)
    store = ModelStore(load_settings().mlflow)
    in_use = store.read_champion().bundle
    assert in_use is not None
    code, text = ask(capsys, out, "show", "eu/orders", "map")
    rate = in_use.for_job("eu", "orders").capacity["map"].observed_per_s[0]
    assert code == 0
    assert re.search(rf"\n +2 +{rate:.0f} +{rate - 3:.0f} to {rate + 3:.0f} +{rate:.0f}\n", text)
    assert ask(capsys, out, "show", "eu/orders") == (0, text)  # it has no other
    for argv, near in ((("eu/ordrs", "map"), "'eu/orders'"), (("eu/orders", "mop"), "'map'")):
        code, text = ask(capsys, out, "show", *argv)
        assert (code, text.count("\n")) == (2, 1)
        assert f"write {near}" in text
    assert ask(capsys, out, "diff", "eu/orders", "map") == (2, "models: diff takes versions; a job is named by --job\n")


def test_a_version_that_is_not_there_is_refused_without_loading_mlflow(out: Path) -> None:
    code = (
        "import sys; from cli.models import main; code = main(sys.argv[1:])"
        "; sys.exit(code if 'mlflow' not in sys.modules else 99)"
    )
    command = [sys.executable, "-c", code, "reject", "99", "--yes", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=DOCUMENT.parents[1])
    assert (done.returncode, done.stderr[:34]) == (2, "models: there is no version 99; th")


def test_what_is_wrong_is_one_line_and_does_nothing(out: Path, capsys, monkeypatch) -> None:
    for name, value in command_environment(out).items():
        monkeypatch.setenv(name, value)
    for argv, reported in (
        (("approve", "99", "--yes"), "models: there is no version 99; there are: 1, 2"),
        (("reject", "--yes"), "models: reject takes one version, as list shows it"),
        (("rollback", "--job", "eu/orders"), "models: --job goes with reject, pin, lift"),
        (("reject", "1", "--job", "eu/nobody", "--yes"), "models: version 1 has no models of eu/nobody"),
        (("list", "1"), "models: list takes no version"),
    ):
        code, text = ask(capsys, out, *argv)
        assert (code, text.count("\n")) == (2, 1)
        assert text.startswith(reported)
