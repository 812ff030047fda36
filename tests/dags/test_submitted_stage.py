"""A stage goes where the connection's type says: by spark-submit, or by what a team's own function makes."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from include.settings import SETTINGS_FILE_VARIABLE, Settings, load_settings
from include.stage_names import Stage

pytestmark = pytest.mark.airflow
ARGUMENTS = ["plan", "--as-of", "2026-11-27T20:00:00Z"]
TEAM = """
from airflow.sdk.bases.operator import BaseOperator

class Operator(BaseOperator):
    calls = ()
    def execute(self, context):
        self.calls = (*self.calls, context)
    def on_kill(self):
        self.calls = (*self.calls, "killed")

def make(task_id, submission, asked, settings, within_s):
    result = Operator(task_id=task_id)
    result.given = (submission, asked, settings, within_s)
    return result
"""


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Any:
    from include.orchestration.stage_operator import StageOperator

    monkeypatch.delenv(SETTINGS_FILE_VARIABLE, raising=False)
    return StageOperator(task_id="plan", stages=[Stage.PLAN], application_args=ARGUMENTS)


def connect(patch: pytest.MonkeyPatch, connection_type: str) -> None:
    name = f"AIRFLOW_CONN_{load_settings().spark.connection_id.upper()}"
    patch.setenv(name, json.dumps({"conn_type": connection_type}))


def test_a_type_that_no_function_is_for_fails_at_once(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from include.orchestration.airflow_names import AirflowFailException

    connect(monkeypatch, "databricks")
    with pytest.raises(AirflowFailException, match=r"of type 'databricks' a function.*docs/spark_services\.md"):
        stage.execute({})


def test_what_a_teams_function_makes_runs_inside_without_a_warning_and_is_ended_with_the_task(
    stage: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "team_spark.py").write_text(TEAM)
    package = tmp_path / "team-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: team\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[tidewise.operators]\naws = team_spark:make\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TIDEWISE__PATHS__OUT", str(tmp_path / "out"))
    monkeypatch.setenv("TIDEWISE__SPARK__PACKAGE_ZIP", str(tmp_path / "out" / "tidewise.zip"))
    (tmp_path / "out" / "stages").mkdir(parents=True)
    (tmp_path / "out" / "stages" / "plan.json").write_text('{"jobs": 14}')
    connect(monkeypatch, "aws")
    context: dict[str, Any] = {}
    with caplog.at_level(logging.WARNING):
        stage.execute(context)
    assert caplog.text == ""
    submission, asked, settings, within_s = stage._service.given
    assert (Path(submission.package).is_file(), submission.master, asked) == (True, "yarn", ARGUMENTS)
    assert (settings, within_s) == (load_settings(), 3 * 3600.0)
    assert stage.summaries == {"plan": {"jobs": 14}}
    stage.on_kill()
    assert stage._service.calls == (context, "killed")
    sys.modules.pop("team_spark")


def test_counts_that_no_driver_wrote_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from include.orchestration.submitted_stage import read_counts

    settings = Settings.model_validate({"paths": {"out": str(tmp_path)}})
    assert read_counts(settings, (Stage.REPORT,)) == {}
    assert "the counts of report cannot be read" in caplog.text
