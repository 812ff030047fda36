"""Licences are listed and advisories named, also where a tool or a service is missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tools import check_deps

REPOSITORY = Path(__file__).resolve().parents[2]
COMPONENTS = [
    {"name": "Zeta", "version": "1", "licenses": [{"license": {"id": "MIT"}}]},
    {"name": "alpha", "version": "2", "licenses": [{"expression": "Apache-2.0 OR BSD-3-Clause"}]},
    {"name": "long", "version": "3", "licenses": [{"license": {"name": "A licence\n of many words " + "x" * 500}}]},
    {"name": "none", "version": "4"},
]


def test_licences_are_listed_with_those_that_declare_none() -> None:
    page = check_deps.licence_list(COMPONENTS)
    assert "| alpha | 2 | Apache-2.0 OR BSD-3-Clause |" in page
    assert "| none | 4 | not declared |" in page
    assert "| zeta | 1 | MIT |" in page
    assert max(map(len, page.splitlines())) < 120
    assert page.index("alpha") < page.index("zeta")


def test_advisories_are_named_with_the_version_that_is_safe() -> None:
    result = check_deps.read_advisories(
        {
            "dependencies": [
                {"name": "good", "version": "1", "vulns": []},
                {"name": "skipped", "skip_reason": "not on the index"},
                {"name": "bad", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["2.1", "3.0"]}]},
            ]
        }
    )
    assert [(one.package, one.name, one.fixed_in) for one in result] == [("bad", "CVE-1", "2.1, 3.0")]


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
    result = {"dependencies": [{"name": "bad", "version": "2", "vulns": [{"id": "CVE-1"}]}]}
    lines = (
        "import json, pathlib, sys",
        f"pathlib.Path(sys.argv[-1]).write_text({json.dumps(result)!r})",
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
    assert line.startswith(
        f"check-deps: cyclonedx-py is not installed beside {python}: run `python3 -m cli.setup --packages docs`"
    )
    with pytest.raises(
        check_deps.DepsError, match=r"^pip-audit is not installed beside .*: run `python3 -m cli.setup --packages docs`"
    ):
        check_deps.find_advisories(REPOSITORY / "requirements.txt", tmp_path / "advisories.json")
