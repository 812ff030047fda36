"""`tidewise install` on a real Airflow that has nothing of the project yet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.doctor.airflow import check_airflow
from cli.doctor.findings import Level
from cli.install import AirflowProgram, install
from include.orchestration.pools import POOLS
from include.settings import Settings

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture
def airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AirflowProgram:
    for name in [one for one in os.environ if one.startswith("AIRFLOW")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    program = Path(sys.executable).with_name("airflow")
    subprocess.run([program, "db", "migrate"], check=True, capture_output=True)
    return AirflowProgram(str(program))


def read_pools(airflow: AirflowProgram) -> dict[str, int]:
    return {str(one["pool"]): int(one["slots"]) for one in airflow.read_list("pools", "list")}


def test_what_is_missing_is_made_once_and_what_is_there_stays(airflow: AirflowProgram) -> None:
    settings = Settings()
    lines = install(airflow, settings, is_dry_run=True)
    assert sum("would be made" in line for line in lines) == len(POOLS) + 1
    assert set(read_pools(airflow)) == {"default_pool"}
    (before,) = (one for one in check_airflow(settings) if one.check == "pools")
    assert before.level is Level.ERROR
    assert "pool tidewise_spark" in before.text
    assert f"connection {settings.spark.connection_id}" in before.text
    lines = install(airflow, settings, is_dry_run=False)
    assert {one.check: one.level for one in check_airflow(settings)}["pools"] is Level.OK
    assert sum(": made" in line for line in lines) == len(POOLS) + 1
    expected = {name: slots for name, (slots, _) in POOLS.items()}
    assert read_pools(airflow).items() >= expected.items()
    (connection,) = airflow.read_list("connections", "get", settings.spark.connection_id)
    assert (connection["conn_type"], connection["host"]) == ("spark", settings.spark.master)
    airflow.run("pools", "set", "tidewise_spark", "7", "ours")
    assert not [line for line in install(airflow, settings, is_dry_run=False) if "made" in line]
    assert read_pools(airflow)["tidewise_spark"] == 7


def test_a_connection_of_another_type_is_examined_too(airflow: AirflowProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings()
    install(airflow, settings, is_dry_run=False)
    assert {one.check: one.level for one in check_airflow(settings)}["submission"] is Level.OK
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "databricks"}')
    (refused,) = (one for one in check_airflow(settings) if one.check == "submission")
    assert refused.level is Level.ERROR
    assert "docs/spark_services.md" in refused.text
