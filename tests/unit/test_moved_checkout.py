"""After a checkout was moved or copied its scripts run its own environment, and no other one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml

from cli import setup
from cli.embedded import airflow_environment
from include.settings import PROJECT, Paths, Settings


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """An environment of a checkout as the set-up has uv make it, with a script that uv installed."""
    venv = tmp_path / "first" / ".venv"
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "-q", "--relocatable", "--no-project", "--python", sys.executable, venv], check=True)
    package = tmp_path / "package"
    package.mkdir()
    (package / "prefix_tool.py").write_text("import sys\n\n\ndef main():\n    print(sys.prefix)\n")
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "prefix-tool"\nversion = "1"\nscripts = { tool = "prefix_tool:main" }\n'
        '[tool.setuptools]\npy-modules = ["prefix_tool"]\n'
    )
    wheel = [uv, "build", "-q", "--wheel", "--no-build-isolation", "--python", sys.executable, package]
    subprocess.run([*wheel, "-o", tmp_path], check=True)
    install = [uv, "pip", "install", "-q", "--offline", "--python", venv / "bin" / "python"]
    subprocess.run([*install, *tmp_path.glob("*.whl")], check=True)
    return venv


def prefix(venv: Path) -> str:
    return subprocess.check_output([venv / "bin" / "tool"], text=True).strip()


def test_a_copy_and_a_moved_one_run_their_own_environment(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, moved, link = (tmp_path / name / ".venv" for name in ("first-copy", "moved", "worktree"))
    shutil.copytree(made.parent, copy.parent, symlinks=True)
    assert [prefix(made), prefix(copy)] == [str(made), str(copy)]
    made.parent.rename(moved.parent)
    assert prefix(moved) == str(moved)
    link.parent.mkdir()
    link.symlink_to(moved)
    for venv in (copy, moved, link):
        monkeypatch.setattr(setup, "VENV", venv)
        assert setup._is_environment()


@pytest.mark.parametrize(("where", "usable"), [("first", True), ("first-copy", False)])
def test_an_environment_of_an_earlier_release_is_made_anew_once_it_was_copied(
    where: str, usable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "first" / ".venv"], check=True)
    shutil.copytree(tmp_path / "first", tmp_path / "first-copy", symlinks=True)
    monkeypatch.setattr(setup, "VENV", tmp_path / where / ".venv")
    assert setup._is_environment() is usable


def test_where_there_is_none_one_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "VENV", tmp_path / ".venv")
    assert not setup._is_environment()


def test_nothing_in_airflows_own_file_leads_to_the_checkout_that_a_copy_came_from(tmp_path):
    """Airflow writes the absolute paths of its first start into airflow.cfg; what the environment says comes first."""
    template = Path(distribution("apache-airflow-core").locate_file("airflow/config_templates/config.yml"))
    variables = airflow_environment(Settings(paths=Paths(out=str(tmp_path))), {})
    absolute = {
        f"AIRFLOW__{section}__{option}".upper()
        for section, content in yaml.safe_load(template.read_text()).items()
        for option, about in content["options"].items()
        if "{AIRFLOW_HOME}" in str(about.get("default"))
    }
    assert len(absolute) >= 5
    assert absolute <= variables.keys()
    of_this_checkout = {"AIRFLOW__CORE__DAGS_FOLDER", "AIRFLOW__CORE__PLUGINS_FOLDER"}
    assert all(str(PROJECT) in variables[name] for name in of_this_checkout)
    assert all(str(tmp_path) in variables[name] for name in absolute - of_this_checkout)
