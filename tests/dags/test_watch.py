"""tidewise_watch: green and red as the fleet is, with one message for each fault and hour to a webhook on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException
from webhook_server import running_webhook

from include.notifications.sent_notices import FOLDER
from include.orchestration.parameters import ParametersError
from include.orchestration.task_states import remember_failure, remember_success
from include.orchestration.tasks import FAILURE_NOTIFIER
from include.orchestration.watch_step import FleetNeedsPersonError, report_watch_failure
from include.orchestration.webhook_notifier import PAGE_PATH, STAGE_FAILING
from include.stage_states import StageStates

pytestmark = pytest.mark.airflow


@pytest.fixture
def lake(tmp_path, monkeypatch) -> Path:
    """The lake of settings with one cluster, which nobody has ever controlled."""
    file = tmp_path / "settings.toml"
    paths = f'lake = "{tmp_path}/lake"\nraw = "{tmp_path}/raw"\nout = "{tmp_path}/out"\n'
    file.write_text(f'[paths]\n{paths}[clusters.prod]\nrest_url = "http://j"\n')
    monkeypatch.setenv("TIDEWISE_SETTINGS", str(file))
    return tmp_path / "lake"


@pytest.fixture
def webhook(monkeypatch):
    with running_webhook() as server:
        connection = {"conn_type": "http", "host": server.url, "password": "T0/B0/secret"}
        monkeypatch.setenv("AIRFLOW_CONN_TIDEWISE_WEBHOOK", json.dumps(connection))
        monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://airflow.example:8080")
        yield server


def failed(task_id: str = "plan", cause: Exception | None = None) -> dict[str, object]:
    task = SimpleNamespace(dag_id="tidewise_plan", task_id=task_id, run_id="scheduled__1", try_number=3, task=None)
    dag = DAG("tidewise_plan", schedule="15 * * * *")
    return {"task_instance": task, "dag": dag, "exception": cause or RuntimeError("spark-submit ended with 1")}


def test_its_command_fails_with_what_to_do(dags, lake) -> None:
    task = dags["tidewise_watch"].get_task("watch")
    environment = dict(os.environ) | task.env
    command = task.bash_command.partition(" --json-file")[0]
    done = subprocess.run(
        ["bash", "-c", command], cwd=task.cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "prod: no controller has ever worked on it" in done.stdout
    assert "start it: tidewise control" in done.stdout
    assert issubclass(FleetNeedsPersonError, AirflowFailException)  # which Airflow never retries


@pytest.fixture
def old_lake(lake) -> Path:
    lake.mkdir()
    return lake


def test_each_fault_is_one_message_with_where_what_and_what_to_do(dags, old_lake, webhook) -> None:
    task = dags["tidewise_watch"].get_task("watch")
    for _ in range(2):  # the second run sends nothing more
        with pytest.raises(FleetNeedsPersonError, match="faults need a person"):
            task.execute({})
    first_lines = [text.split("\n")[0] for text in webhook.texts]
    assert len(first_lines) == len(set(first_lines)) >= 4
    (late,) = [text for text in webhook.texts if "controller late" in text]
    assert late == (
        "prod: controller late: no controller has ever worked on it → "
        f"start it: tidewise control, its service, or the DAG tidewise_control\nhttp://airflow.example:8080{PAGE_PATH}/"
    )
    assert set(webhook.paths) == {"/T0/B0/secret"}


def test_a_failed_task_is_sent_at_once_and_not_again_by_the_watch_and_its_end_once(dags, old_lake, webhook) -> None:
    watch = dags["tidewise_watch"].get_task("watch")
    for callback in dags["tidewise_plan"].get_task("forecast_plan_report").on_failure_callback:
        callback(failed())
    assert [text.partition(":")[0] for text in webhook.texts] == ["all clusters"]
    assert "tidewise_plan.plan failed after 3 tries" in webhook.texts[0]
    assert "docs/runbook.md" in webhook.texts[0]
    with pytest.raises(FleetNeedsPersonError):
        watch.execute({})
    assert sum("stage failing" in text for text in webhook.texts) == 1
    remember_success(failed())
    with pytest.raises(FleetNeedsPersonError):
        watch.execute({})
    assert sum("over after" in text and "tidewise_plan.plan" in text for text in webhook.texts) == 1


@pytest.mark.parametrize("how", ["none", "gone", "broken", "slow"])
def test_no_webhook_and_a_bad_one_harm_nothing(old_lake, webhook, monkeypatch, how) -> None:
    if how == "none":
        monkeypatch.delenv("AIRFLOW_CONN_TIDEWISE_WEBHOOK")
    elif how == "gone":
        monkeypatch.setenv("AIRFLOW_CONN_TIDEWISE_WEBHOOK", json.dumps({"host": "http://127.0.0.1:1/x"}))
    elif how == "broken":
        webhook.status = 500
    else:
        webhook.is_slow = True
        monkeypatch.setattr("include.orchestration.webhook_connection.WITHIN_S", 0.3)
    FAILURE_NOTIFIER(failed())
    assert webhook.texts == []
    assert not (old_lake / FOLDER).exists()


def test_wrong_parameters_are_no_fault_of_the_fleet(old_lake) -> None:
    remember_failure(failed(cause=ParametersError("not on a full hour")))
    assert StageStates(str(old_lake)).read() == []
    remember_failure(failed())
    (state,) = StageStates(str(old_lake)).read()
    assert (state.task, state.error) == ("tidewise_plan.plan", "spark-submit ended with 1")


def test_a_watch_that_cannot_read_the_fleet_is_sent_itself(old_lake, webhook) -> None:
    report_watch_failure(failed("watch", FleetNeedsPersonError("3 faults need a person")))
    assert webhook.texts == []
    report_watch_failure(failed("watch", RuntimeError("Bash command failed")))
    assert "tidewise_plan.watch failed" in webhook.texts[0]


def test_its_names_are_those_of_the_layers_above() -> None:
    code = "from fleet.health import Fault; from page import PREFIX; print(Fault.STAGE_FAILING, PREFIX)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [STAGE_FAILING, PAGE_PATH]
