"""Dependencies: pinned with hashes, those that are imported, and nothing that was saved is unpickled."""

from __future__ import annotations

import ast
import io
import re
from pathlib import Path

import numpy as np
import pytest

from cli import setup
from models.bundle.fleet_bundle import BundleError, FleetBundle

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("cli", "fleet", "page", "include", "models", "spark_jobs", "controller", "dags", "tools", "benchmarks")


@pytest.mark.covers("apply_review 22")
@pytest.mark.parametrize("name", sorted(path.name for path in REPOSITORY.glob("requirements*.txt")))
def test_everything_that_is_installed_has_hashes(name: str) -> None:
    blocks = re.split(r"\n(?=[a-z0-9])", (REPOSITORY / name).read_text().split("make lock\n")[1].strip())
    assert blocks
    for block in blocks:
        assert re.match(r"[A-Za-z0-9._-]+(\[[a-z,0-9_-]+\])?==\S+( ; .*)? \\\n", block), block[:80]
        assert "--hash=sha256:" in block
    assert "://" not in "".join(blocks)  # from whichever index pip is configured for
    assert "--require-hashes" in setup.SYNC_OPTIONS


def test_direct_dependencies_are_those_that_are_imported() -> None:
    listed = {re.split(r"[=<>\[]", line)[0] for line in (REPOSITORY / "requirements.in").read_text().splitlines()}
    pinned = (REPOSITORY / "requirements.txt").read_text()
    assert all(f"\n{name}==" in pinned for name in listed if name and not name.startswith("#"))
    assert {"deltalake", "obstore"} <= listed
    imported = set()
    for package in PACKAGES:
        for file in (REPOSITORY / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    imported.add(node.module.split(".")[0])
    assert ("requests" in listed) == ("requests" in imported)


def test_models_and_arrays_are_read_without_pickle() -> None:
    loads = []
    for package in PACKAGES:
        for file in (REPOSITORY / package).rglob("*.py"):
            source = file.read_text()
            assert not re.search(
                r"^[ \t]*(import|from) (pickle|cloudpickle|dill|joblib|shelve|marshal)\b", source, re.M
            ), file
            assert "allow_pickle=True" not in source, file
            if ".load(" in source:
                loads += [node for node in ast.walk(ast.parse(source)) if _is_load(node)]
    assert len(loads) >= 2
    for load in loads:
        given = {keyword.arg: keyword.value for keyword in load.keywords}
        assert isinstance(given.get("allow_pickle"), ast.Constant), ast.unparse(load)
        assert given["allow_pickle"].value is False  # type: ignore[attr-defined]


def _is_load(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "load":
        return False
    return isinstance(node.func.value, ast.Name) and node.func.value.id in {"np", "numpy"}


class Planted:
    """An object that would leave a mark when it is unpickled."""

    marks: list[str] = []  # noqa: RUF012

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Planted.marks.append, ("unpickled",)


def test_an_object_planted_in_a_bundle_is_refused_and_not_run() -> None:
    buffer = io.BytesIO()
    np.savez(buffer, header=np.frombuffer(b"{}", np.uint8), recovery=np.array([Planted()], dtype=object))
    with pytest.raises(BundleError, match="allow_pickle"):
        FleetBundle.from_bytes(buffer.getvalue())
    assert Planted.marks == []
