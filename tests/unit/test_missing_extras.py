"""Settings that need packages which are not installed are refused when they load, with the command to run."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from sqlalchemy import make_url

from cli import setup
from cli.setup import wanted_extras
from cli.setup_steps import SetupError
from include.extras import EXTRAS
from include.settings import SettingsError, load_settings

REPOSITORY = Path(__file__).resolve().parents[2]
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


@pytest.fixture
def without(monkeypatch, tmp_path):
    """Hides modules that may be installed here, and the others of the extras are there."""
    monkeypatch.chdir(tmp_path)
    real = importlib.util.find_spec

    def hide(*hidden: str) -> None:
        present = {module for modules in EXTRAS.values() for module in modules} - set(hidden)
        for name in ("include.extras.find_spec", "include.settings.missing_extras.find_spec"):
            monkeypatch.setattr(
                name, lambda module: None if module in hidden else module if module in present else real(module)
            )

    return hide


CASES = [
    ("TRACKING_URI", "postgresql://mlflow@db/mlflow", "psycopg", "make setup EXTRA=postgres"),
    ("TRACKING_URI", "postgresql+psycopg2://mlflow@db/mlflow", "psycopg2", "make setup EXTRA=postgres"),
    ("TRACKING_URI", "mysql+pymysql://mlflow@db/mlflow", "pymysql", "the driver pymysql of mysql"),
    ("ARTIFACT_ROOT", "s3a://bucket/models", "boto3", "make setup EXTRA=s3"),
]


@pytest.mark.parametrize(("key", "value", "module", "expected"), CASES)
def test_what_is_not_installed_is_named_with_its_command(without, monkeypatch, key, value, module, expected):
    monkeypatch.setenv(f"TIDEWISE__MLFLOW__{key}", value)
    without(module)
    with pytest.raises(SettingsError, match=f"mlflow.{key.lower()}") as error:
        load_settings()
    assert expected in str(error.value)
    assert len(error.value.faults) == 1


@pytest.mark.parametrize(("key", "value", "module"), [case[:3] for case in CASES if case[2] != "pymysql"])
def test_what_is_installed_is_taken(without, monkeypatch, key, value, module):
    monkeypatch.setenv(f"TIDEWISE__MLFLOW__{key}", value)
    without()
    load_settings()
    without(module, "mlflow")  # beside an Airflow of a team's own, where nothing reads models
    load_settings()


def test_the_driver_that_sqlalchemy_takes_without_a_name_is_in_the_extra():
    assert make_url("postgresql://mlflow@db/mlflow").get_dialect().driver in EXTRAS["postgres"]


def test_the_defaults_need_no_extra(without):
    without(*(module for modules in EXTRAS.values() for module in modules))
    load_settings()


def test_extras_that_were_installed_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(setup, "VENV", tmp_path)
    assert wanted_extras([]) == []
    (tmp_path / ".tidewise-extra-s3").touch()
    assert wanted_extras(["postgres"]) == ["postgres", "s3"]
    with pytest.raises(SetupError, match="there is no extra gcs: EXTRA may name celery, docs, postgres, s3"):
        wanted_extras(["gcs"])


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_an_extra_pins_what_it_brings_and_nothing_that_is_pinned_already(extra):
    pinned, locked = (
        dict(PINNED.findall((REPOSITORY / name).read_text()))
        for name in (f"requirements-{extra}.txt", "requirements.txt")
    )
    assert {
        {"psycopg2": "psycopg2-binary", "myst_parser": "myst-parser"}.get(module, module) for module in EXTRAS[extra]
    } <= set(pinned)
    assert set(pinned) & set(locked) == set()
    (listed,) = re.findall(r"@for extra in ([a-z0-9 ]+);", (REPOSITORY / "Makefile").read_text())
    assert listed.split() == sorted(EXTRAS)
