"""`tidewise install`: what it asks of Airflow and refuses; a real Airflow is in tests/long/test_own_airflow.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli import install
from cli.install import AirflowProgram, InstallError, check_version, find_missing_providers

PROVIDERS = [{"package_name": name} for name in install.PROVIDERS]


@pytest.mark.parametrize("text", ["3.1.8\n", "a warning of a plugin\n3.3.2\n", "4.0.0rc1\n"])
def test_a_version_that_the_dags_run_on_is_taken(text: str) -> None:
    assert check_version(text) == text.rsplit(maxsplit=1)[-1]


@pytest.mark.parametrize(
    ("text", "why"),
    [("3.0.6", "need 3.1"), ("2.11.0", "need 3.1"), ("", "no version"), ("usage", "no version")],
)
def test_another_one_is_refused(text: str, why: str) -> None:
    with pytest.raises(InstallError, match=why):
        check_version(text)


def test_a_provider_that_is_missing_is_named() -> None:
    assert find_missing_providers(PROVIDERS) == []
    assert find_missing_providers([*PROVIDERS[1:], {"package_name": "other"}]) == [install.PROVIDERS[0]]


def program(folder: Path, script: str) -> AirflowProgram:
    """Return a program that replies as Airflow 3.1.8 did."""
    file = folder / "airflow"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return AirflowProgram(str(file))


def test_rows_are_read_behind_warnings_and_a_sentence_is_no_row(tmp_path: Path) -> None:
    rows = '2026-11-27T18:13:22Z [info     ] setup plugin\n[warning] x\n[{"pool": "a", "slots": "1"}]'
    assert program(tmp_path, f"cat <<'E'\n{rows}\nE").read_list("pools", "list") == [{"pool": "a", "slots": "1"}]
    assert program(tmp_path, "echo No data found").read_list("connections", "list") == []


def test_what_airflow_says_of_a_failure_is_passed_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failing = program(tmp_path, "echo first >&2; echo 'You need to initialize the database' >&2; exit 1")
    assert install.main(["--airflow", failing.program]) == 1
    assert "version` failed: You need to initialize the database" in capsys.readouterr().err
    assert install.main(["--airflow", str(tmp_path / "none")]) == 1
    assert "does not run" in capsys.readouterr().err


@pytest.mark.parametrize(
    "raised",
    [
        "sqlalchemy.exc.OperationalError: (sqlite3.OperationalError) no such table: slot_pool",
        'sqlalchemy.exc.ProgrammingError: (psycopg2.errors.UndefinedTable) relation "slot_pool" does not exist',
    ],
)
def test_of_a_traceback_the_exception_is_passed_on_and_what_to_do(tmp_path: Path, raised: str) -> None:
    printed = f"Traceback (most recent call last):\n{raised}\n[SQL: SELECT slot_pool.id]\n(Background on this error)"
    failing = program(tmp_path, f"cat >&2 <<'E'\n{printed}\nE\nexit 1")
    with pytest.raises(InstallError) as refused:
        failing.read_list("pools", "list")
    assert raised in str(refused.value)
    assert "airflow db migrate" in str(refused.value)


def test_without_an_airflow_it_says_how_to_name_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert install.main([]) == 2
    assert "--airflow /path/to/airflow" in capsys.readouterr().err
