"""Dependencies: pinned with hashes, licences listed, and nothing that was saved is unpickled."""

from __future__ import annotations

import ast
import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from cli import check_deps, setup
from models.bundle import BundleError, FleetBundle

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("cli", "include", "models", "spark_jobs", "controller", "dags", "benchmarks")
UNPICKLING = re.compile(r"^\s*(import|from) (pickle|cloudpickle|dill|joblib|shelve|marshal)\b", re.MULTILINE)
COMPONENTS = [
    {"name": "Zeta", "version": "1", "licenses": [{"license": {"id": "MIT"}}]},
    {"name": "alpha", "version": "2", "licenses": [{"expression": "Apache-2.0 OR BSD-3-Clause"}]},
    {"name": "long", "version": "3", "licenses": [{"license": {"name": "A licence\n of many words " + "x" * 500}}]},
    {"name": "none", "version": "4"},
]


@pytest.mark.covers("apply_review 22")
@pytest.mark.parametrize("name", ["requirements.txt", "requirements-uv.txt", "requirements-flink.txt"])
def test_everything_that_is_installed_has_hashes(name: str) -> None:
    blocks = re.split(r"\n(?=[a-z0-9])", (REPOSITORY / name).read_text().split("make lock\n")[1].strip())
    assert blocks
    for block in blocks:
        assert re.match(r"[A-Za-z0-9._-]+(\[[a-z,0-9_-]+\])?==\S+( ; .*)? \\\n", block), block[:80]
        assert "--hash=sha256:" in block
    assert "://" not in "".join(blocks)  # from whichever index pip is configured for
    assert "--require-hashes" in setup.INSTALL_OPTIONS


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


def test_licences_are_listed_with_those_that_declare_none() -> None:
    page = check_deps.licence_list(COMPONENTS)
    assert "| alpha | 2 | Apache-2.0 OR BSD-3-Clause |" in page
    assert "| none | 4 | not declared |" in page
    assert "| zeta | 1 | MIT |" in page
    assert max(map(len, page.splitlines())) < 120
    assert page.index("alpha") < page.index("zeta")


def test_advisories_are_named_with_the_version_that_is_safe() -> None:
    found = check_deps.read_advisories(
        {
            "dependencies": [
                {"name": "good", "version": "1", "vulns": []},
                {"name": "skipped", "skip_reason": "not on the index"},
                {"name": "bad", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["2.1", "3.0"]}]},
            ]
        }
    )
    assert [(one.package, one.name, one.fixed_in) for one in found] == [("bad", "CVE-1", "2.1, 3.0")]


def test_without_a_service_it_says_so_and_does_not_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = tmp_path / "tool"
    tool.write_text(f"#!{sys.executable}\nimport sys\nprint('ConnectionError: no route to host')\nsys.exit(1)\n")
    tool.chmod(0o755)
    monkeypatch.setattr(check_deps, "_tool", lambda _: str(tool))
    monkeypatch.setattr(check_deps, "write_sbom", lambda target, python: COMPONENTS)
    assert check_deps.main(["--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "advisories were not checked, no service was reached: ConnectionError: no route to host" in printed
    assert "without a declared licence: none" in printed
    found = {"dependencies": [{"name": "bad", "version": "2", "vulns": [{"id": "CVE-1"}]}]}
    lines = (
        "import json, pathlib, sys",
        f"pathlib.Path(sys.argv[-1]).write_text({json.dumps(found)!r})",
        "sys.exit(1)",
    )
    tool.write_text("\n".join([f"#!{sys.executable}", *lines, ""]))
    assert check_deps.main(["--out", str(tmp_path)]) == 1
    assert "bad 2: CVE-1, fixed in none yet" in capsys.readouterr().out


def test_a_tool_that_is_missing_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python = tmp_path / "bin" / "python"
    monkeypatch.setattr(sys, "executable", str(python))
    assert check_deps.main(["--out", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"check-deps: cyclonedx-py is not installed beside {python}: run `make setup`")
    with pytest.raises(check_deps.DepsError, match=r"^pip-audit is not installed beside .*: run `make setup`"):
        check_deps.find_advisories(REPOSITORY / "requirements.txt", tmp_path / "advisories.json")


def test_models_and_arrays_are_read_without_pickle() -> None:
    loads = []
    for package in PACKAGES:
        for file in (REPOSITORY / package).rglob("*.py"):
            source = file.read_text()
            assert not re.search(
                r"^\s*(import|from) (pickle|cloudpickle|dill|joblib|shelve|marshal)\b", source, re.M
            ), file
            assert "allow_pickle=True" not in source, file
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
