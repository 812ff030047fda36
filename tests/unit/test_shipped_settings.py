"""A driver in an empty environment and another folder goes by the submitter's settings, or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from include.settings import SETTINGS_FILE_VARIABLE, Settings, SettingsError, load_settings
from include.settings.storage import Paths
from include.spark.code_zip import build_package
from include.spark.shipped_settings import ship_settings, take_settings
from page.money import price_of

REPOSITORY = Path(__file__).resolve().parents[2]
DRIVER = """
import sys
from include.settings import load_settings
from include.spark.shipped_settings import split_argv, take_settings
named, _ = split_argv(sys.argv[1:])
if named:
    take_settings(named)
print(load_settings().model_dump_json())
"""


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings that the submitter has from its environment alone."""
    monkeypatch.setenv("TIDEWISE__PATHS__LAKE", "/mnt/lake")
    monkeypatch.setenv("TIDEWISE__LIMITS__MODE", "approve")
    monkeypatch.setenv("TIDEWISE__PLANNER__COSTS__LATE_WEIGHT", "0.25")
    return load_settings()


def drive(zip_file: Path, folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run what a driver does first: the project is a zip, the environment is empty."""
    return subprocess.run(
        [sys.executable, "-c", DRIVER, *argv],
        cwd=folder,
        env={"PYTHONPATH": str(zip_file)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_driver_in_an_empty_environment_has_the_submitters_settings(submitted: Settings, tmp_path: Path) -> None:
    package = build_package(REPOSITORY, tmp_path / "tidewise.zip")
    file = ship_settings(submitted, tmp_path / "here")
    assert ship_settings(submitted, tmp_path / "here") == file
    there = tmp_path / "there"
    there.mkdir()
    (there / file.name).write_bytes(file.read_bytes())  # as Spark ships it
    done = drive(package, there, "plan", "--settings", f"/gone/{file.name}")
    assert done.returncode == 0, done.stderr
    assert Settings.model_validate_json(done.stdout) == submitted
    shipped = Settings.model_validate_json(file.read_text())
    assert (price_of(submitted), price_of(shipped)) == (None, None)  # nobody has said a price
    # Without it the driver would take the defaults and say nothing.
    silent = Settings.model_validate_json(drive(package, there).stdout)
    assert (silent.paths.lake, silent.limits.mode) == ("out/lake", "dry-run")


def test_settings_that_are_not_the_submitters_are_refused(submitted: Settings, tmp_path: Path) -> None:
    file = ship_settings(submitted, tmp_path)
    with pytest.raises(SettingsError, match=r"are neither /gone/x.json nor in the working directory"):
        take_settings("/gone/x.json", {})
    file.write_text(file.read_text().replace("/mnt/lake", "/mnt/other"))
    with pytest.raises(SettingsError, match="is not what the submitter wrote"):
        take_settings(str(file), {})


def test_what_the_environment_of_the_driver_says_does_not_count(tmp_path: Path) -> None:
    settings = Settings(paths=Paths(lake="s/lake"))
    file = ship_settings(settings, tmp_path)
    environment = {"tidewise__limits__mode": "auto", "TIDEWISE__PATHS__LAKE": "other", "PATH": "/bin"}
    take_settings(str(file), environment)
    assert environment == {SETTINGS_FILE_VARIABLE: str(file), "PATH": "/bin"}
