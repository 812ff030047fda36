"""Flink in other versions than the project's own, each installed into a folder of its own when it is asked for."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cli.setup import CACHE, VENV
from cli.setup_steps import run

RELEASES_DIR = CACHE / "flink-versions"
_PACKAGE = "apache-flink-libraries"
RELEASES: Mapping[str, tuple[str, ...]] = {
    "1.17.2": ("1d7f7de6d3288610d0fecb7b45235343e31d644d0eacbe5e560560ed9124dcdb",),
    "1.18.1": ("369ce11ab33e5e15cdd349db2f5412dcc2fad163b6a87aa93b927a3631bcca7f",),
    "1.20.5": ("e6aee62ea1a1fe7b32e28894ad079f3f1a50a372a4caac3df52405267f4228c8",),
    "2.0.2": ("64dced9d0324a5f23f84e9cdf444d3fd64632169e477f001c21b422f39b995ba",),
    "2.2.1": (
        "74dc5546fbd9add8fbcdf1222a237e09491f9b80296241aef8676ec56f8e686e",
        "eec27ffa86d01184de7f5ab668c479c83cdb75ebc7fba8091307da4f1a9d3348",
    ),
    "2.3.0": (
        "38ece876553286b3a285cf344c2d2038f8a7ca10da5df54d5107250386d64151",
        "570bf8831d3c1336311e924e97119e52d8842e5485a4a7709ff9a92db709b006",
    ),
}
"""Version -> SHA-256 of the files of its package: nothing else is installed."""


def install_release(version: str) -> Path:
    """Return the folder with a version's ``lib`` and ``plugins``; installed (300 MB) unless it is there.

    Raises:
        KeyError: no hash of that version is known.
        SetupError: it could not be installed.
    """
    target, package = RELEASES_DIR / version, f"{_PACKAGE}=={version}"
    mark = target / ".complete"
    if mark.is_file() and mark.read_text().strip() == package:
        return target / "pyflink"
    hashes = " ".join(f"--hash=sha256:{one}" for one in RELEASES[version])
    RELEASES_DIR.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{version}.partial")
    for leftover in (partial, target):
        shutil.rmtree(leftover, ignore_errors=True)
    uv: list[str | Path] = [VENV / "bin" / "uv", "pip", "install", "--no-deps", "--no-cache", "--require-hashes"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        requirements.write(f"{package} {hashes}\n")
        requirements.flush()
        into: list[str | Path] = ["--python", VENV / "bin" / "python", "--target", partial, "-r", requirements.name]
        run([*uv, *into], "check the network and run this again")
    (partial / ".complete").write_text(package)
    partial.rename(target)
    return target / "pyflink"
