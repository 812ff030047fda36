"""A stage goes where the connection's type says; what cannot be submitted fails at once, and is not tried again."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from services import SERVICES

from include.settings import SETTINGS_FILE_VARIABLE, Settings, load_settings
from include.stage_names import Stage
from include.submitting.connection_types import KEY

pytestmark = pytest.mark.airflow
ARGUMENTS = ["plan", "--as-of", "2026-11-27T20:00:00Z"]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Any:
    from include.orchestration.stage_operator import StageOperator

    monkeypatch.delenv(SETTINGS_FILE_VARIABLE, raising=False)
    return StageOperator(task_id="plan", stages=[Stage.PLAN], application_args=ARGUMENTS)


def connect(patch: pytest.MonkeyPatch, connection_type: str, values: dict[str, Any]) -> None:
    name = f"AIRFLOW_CONN_{load_settings().spark.connection_id.upper()}"
    patch.setenv(name, json.dumps({"conn_type": connection_type, "extra": {KEY: values}}))


@pytest.mark.parametrize(
    ("connection_type", "values", "why"),
    [
        ("http", {}, "not submitted through a connection of type 'http'"),
        ("databricks", {"new_cluster": {}}, "pip install apache-airflow-providers-databricks"),
    ],
)
def test_what_no_further_try_can_help_fails_at_once(
    stage: Any, monkeypatch: pytest.MonkeyPatch, connection_type: str, values: dict[str, Any], why: str
) -> None:
    from include.orchestration.airflow_names import AirflowFailException

    connect(monkeypatch, connection_type, values)
    with pytest.raises(AirflowFailException, match=why):
        stage.execute({})


def test_a_lake_on_this_machine_is_refused_before_anything_is_sent(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from include.orchestration.airflow_names import AirflowFailException

    connection_type, kind, values = SERVICES["spark_operator"]
    monkeypatch.setattr(kind, "provider", "pytest")  # is installed
    connect(monkeypatch, connection_type, values)
    with pytest.raises(AirflowFailException, match=r"does not see paths\.lake"):
        stage.execute({})


def test_a_providers_operator_runs_inside_without_a_warning_and_is_ended_with_the_task(
    stage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    from airflow.sdk.bases.operator import BaseOperator

    from include.orchestration.submitted_stage import run_operator

    class Operator(BaseOperator):
        calls: tuple[Any, ...] = ()

        def execute(self, context: Any) -> None:
            self.calls = (*self.calls, context)

        def on_kill(self) -> None:
            self.calls = (*self.calls, "killed")

    operator = Operator(task_id="inner")
    with caplog.at_level(logging.WARNING):
        run_operator(operator, {"a": 1})
    assert caplog.text == ""
    stage._service = operator
    stage.on_kill()
    assert operator.calls == ({"a": 1}, "killed")


def test_counts_of_a_stage_are_what_its_driver_wrote(tmp_path: Any) -> None:
    from include.orchestration.submitted_stage import read_counts

    settings = Settings.model_validate({"paths": {"out": str(tmp_path)}})
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "plan.json").write_text('{"jobs": 14}')
    assert read_counts(settings, (Stage.PLAN, Stage.REPORT)) == {"plan": {"jobs": 14}}
