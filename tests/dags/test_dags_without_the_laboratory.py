"""DAGs of the laboratory's stages are absent where it is not installed, and the others are parsed."""

from __future__ import annotations

from pathlib import Path

import pytest
from product_alone import run_alone

pytestmark = pytest.mark.airflow


def test_dags_that_need_it_are_absent_and_no_other(tmp_path: Path) -> None:
    code = """
from airflow.dag_processing.dagbag import DagBag
bag = DagBag("dags", known_pools=None)
print(sorted(bag.dags), sorted(task.task_id for task in bag.dags["tidewise_train"].tasks), bag.import_errors)
"""
    kept = ["tidewise_approve", "tidewise_control", "tidewise_hour", "tidewise_import", "tidewise_ingest"]
    kept += ["tidewise_maintenance", "tidewise_plan", "tidewise_train", "tidewise_watch"]
    answer = run_alone(code, AIRFLOW_HOME=str(tmp_path), AIRFLOW__CORE__LOAD_EXAMPLES="False")
    assert answer == f"{kept} ['first_plan', 'plan_wanted', 'train'] {{}}"
