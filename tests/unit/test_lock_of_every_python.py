"""One lock for every Python that is supported: what each of them needs is pinned once, in a version that it accepts."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from cli.preflight import PYTHONS

REPOSITORY = Path(__file__).resolve().parents[2]
LINE = re.compile(r"^([A-Za-z0-9._-]+)(\[[^]]*\])?==(\S+)(?: ; (.*?))? \\$", re.MULTILINE)
VERSIONS = [f"{major}.{minor}" for major, minor in PYTHONS]


def environment(python: str) -> dict[str, str]:
    """Return what markers are asked with under a Python on Linux."""
    machine = {name: str(value) for name, value in default_environment().items()}
    linux = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
    return machine | linux | {"python_version": python, "python_full_version": f"{python}.5"}


@cache
def pins(python: str) -> dict[str, str]:
    """Return package -> version of the lock under a Python.

    Raises:
        AssertionError: a package is pinned twice.
    """
    result: dict[str, str] = {}
    for name, _, version, marker in LINE.findall((REPOSITORY / "requirements.txt").read_text()):
        if marker and not Marker(marker).evaluate(environment(python)):
            continue
        assert canonicalize_name(name) not in result
        result[canonicalize_name(name)] = version
    return result


@pytest.mark.parametrize("python", VERSIONS)
def test_what_every_package_needs_is_pinned(python: str) -> None:
    locked, asked, missing = pins(python), 0, []
    for package in distributions():
        name = canonicalize_name(package.metadata["Name"])
        if locked.get(name) != package.version:
            continue  # not installed by the lock: pip and uv themselves, or this package is another Python's
        assert SpecifierSet(package.metadata.get("Requires-Python", "")).contains(f"{python}.0"), name
        for text in package.requires or ():
            need = Requirement(text)
            if need.marker is not None and not need.marker.evaluate(environment(python) | {"extra": ""}):
                continue
            asked += 1
            version = locked.get(canonicalize_name(need.name))
            if version is None or not need.specifier.contains(version, prereleases=True):
                missing.append(f"{name} needs {text}, {version} is pinned")
    assert missing == []
    assert asked > 400


def test_pythons_differ_by_markers_only_where_packages_say_so() -> None:
    assert all(set(pins(VERSIONS[0])) <= set(pins(python)) for python in VERSIONS)
    # libcst reads YAML without the interpreter's lock under 3.13 alone.
    assert set(pins("3.13")) - set(pins("3.11")) == {"pyyaml-ft"}
    assert set(pins("3.12")) == set(pins("3.11"))
    assert "pywin32" not in pins("3.13")


def test_the_project_names_the_same_pythons() -> None:
    project, makefile = ((REPOSITORY / name).read_text() for name in ("pyproject.toml", "Makefile"))
    (wanted,) = re.findall(r'^requires-python = "(.*)"$', project, re.MULTILINE)
    (bounds,) = re.findall(r"sys.exit\(not (\(3, \d+\)) <= .* <= (\(3, \d+\))\)", makefile)
    assert bounds == (str(PYTHONS[0]), str(PYTHONS[-1]))
    minors = [minor for minor in range(5, 20) if SpecifierSet(wanted).contains(f"3.{minor}.0")]
    assert minors == [minor for _, minor in PYTHONS]
