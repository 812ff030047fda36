"""The script of services that take one Python file: in an empty folder and environment it fetches code and settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from include.settings import Settings
from include.spark.code_zip import build_package
from include.spark.shipped_settings import ship_settings

REPOSITORY = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.long


def drive(folder: Path, package: Path, settings: Path) -> subprocess.CompletedProcess[str]:
    """Run a copy of the script as a service does: nothing of the project is beside it."""
    there = folder / "service"
    there.mkdir(exist_ok=True)
    script = shutil.copy(REPOSITORY / "spark_jobs" / "fetch_and_launch.py", there)
    return subprocess.run(
        [sys.executable, script, package.as_uri(), settings.as_uri(), "plan", "--as-of", "2026-11-27T20:00:00Z"],
        cwd=there,
        env={"PATH": os.environ["PATH"], "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_SUBMIT_ARGS": "pyspark-shell"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_code_and_settings_come_from_where_the_arguments_say(tmp_path: Path) -> None:
    package = build_package(REPOSITORY, tmp_path / "tidewise.zip")
    file = ship_settings(Settings.model_validate({"paths": {"lake": str(tmp_path / "lake")}}), tmp_path)
    done = drive(tmp_path, package, file)
    # The stage itself ends there: no jars of Delta are given.
    assert "tidewise: stage plan starts" in done.stdout, done.stderr[-2000:]
    assert done.returncode != 0
    assert "tidewise: stage plan failed" in done.stderr
    file.write_text(file.read_text().replace("dry-run", "auto"))
    refused = drive(tmp_path, package, file)
    assert "is not what the submitter wrote" in refused.stderr
    assert "starts" not in refused.stdout
