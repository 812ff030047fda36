"""A version of code tells the code that ran from any other, and changes with nothing else."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest
from import_graph import imports_of

from include.import_closure import close_over_imports
from include.spark.code_zip import PACKAGES, packed_files
from include.stage_names import Stage
from include.version import VERSION, controller_version, stage_version

ROOT = Path(__file__).parents[2]
ALL_PACKAGES = (*PACKAGES, "controller")


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return dict(packed_files(ROOT, ALL_PACKAGES))


def test_modules_reach_what_they_import_and_its_packages() -> None:
    files = {
        "a/__init__.py": b"",
        "a/one.py": b"import b.two as two, c\nfrom a import (  # all of them\n    three,\n)\n",
        "a/three.py": b"def read():\n    from b import X\n",
        "b/__init__.py": b"X = 1\n",
        "b/two.py": b"",
        "b/left_out.py": b"",
        "b/page.html": b"<p>",
        "c/__init__.py": b"",
        "c/left_out.py": b"",
    }
    reached = ["a/__init__.py", "a/one.py", "a/three.py", "b/__init__.py", "b/page.html", "b/two.py", "c/__init__.py"]
    assert close_over_imports(files, ["a.one", "not.there"]) == reached


@pytest.mark.parametrize("root", ["controller", "spark_jobs.plan", "spark_jobs.train"])
def test_no_import_of_the_projects_own_code_is_missed(files: dict[str, bytes], root: str) -> None:
    reached = close_over_imports(files, [root])
    modules = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in files}
    for path in reached:
        if path.endswith(".py"):
            missed = {modules[name] for name in imports_of(ast.parse(files[path]), modules)} - set(reached)
            assert not missed, path


def test_a_plan_is_of_its_own_policy_and_no_other(files: dict[str, bytes]) -> None:
    reached = close_over_imports(files, ["spark_jobs.plan"])
    elsewhere = ("lab/policies/phoebe", "lab/replay", "controller")
    assert not [path for path in reached if path.startswith(elsewhere)]
    versions = {stage_version(Stage.PLAN), stage_version(Stage.PLAN, ["phoebe"]), stage_version(Stage.PLAN, ["ds2"])}
    assert len(versions) == 3
    assert stage_version(Stage.PLAN, ["no policy of the project"]) == stage_version(Stage.PLAN)


def test_the_controllers_version_is_of_the_controller(files: dict[str, bytes]) -> None:
    reached = close_over_imports(files, ["controller"])
    assert {path for path in files if path.startswith("controller/")} <= set(reached)
    assert not [path for path in reached if path.startswith(("spark_jobs/", "lab/policies/phoebe"))]
    assert controller_version() not in {controller_version(["dhalion"]), stage_version(Stage.PLAN)}


def test_one_release_has_one_number() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
    assert f"## [{VERSION}]" in (ROOT / "CHANGELOG.md").read_text()
