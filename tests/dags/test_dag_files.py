"""DAG files: which there are, that they parse fast, and that they drag nothing heavy along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

DAG_FOLDER = Path(__file__).resolve().parents[2] / "dags"
DAG_FILES = sorted(DAG_FOLDER.glob("tidewise_*.py"))
DAG_IDS = {
    "tidewise_control",
    "tidewise_hour",
    "tidewise_import",
    "tidewise_ingest",
    "tidewise_train",
    "tidewise_plan",
    "tidewise_profile",
    "tidewise_backtest",
    "tidewise_maintenance",
    "tidewise_approve",
    "tidewise_watch",
}
HEAVY = ("pyspark", "delta", "mlflow", "sklearn", "scipy", "numpy", "pandas", "pyarrow", "deltalake", "requests")

# In a process that has imported Airflow and its operators, as every DAG processor has before the first file.
PARSE = """
import importlib.util, json, sys, time
before = set(sys.modules)
started = time.process_time()  # CPU seconds: the suite runs beside other work
spec = importlib.util.spec_from_file_location("dag_file", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
seconds = time.process_time() - started
print(json.dumps({"seconds": seconds, "new": sorted(set(sys.modules) - before), "all": sorted(sys.modules)}))
"""

pytestmark = pytest.mark.airflow


def test_exactly_these_dags(dags):
    assert set(dags) == DAG_IDS


def test_one_dag_per_file_named_like_it():
    assert {path.stem for path in DAG_FILES} == DAG_IDS
    assert {path.name for path in DAG_FOLDER.glob("*.py")} == {f"{name}.py" for name in DAG_IDS} | {"__init__.py"}


@pytest.mark.parametrize("path", DAG_FILES, ids=lambda path: path.stem)
def test_parses_fast_and_light(path, run_python):
    result = json.loads(run_python(PARSE, str(path)).splitlines()[-1])
    assert result["seconds"] < 2.0  # half of it on an idle machine
    loaded = {name.split(".")[0] for name in result["all"]}
    assert loaded.isdisjoint(set(HEAVY) - {"requests"})
    added = {name.split(".")[0] for name in result["new"]}
    assert added.isdisjoint(HEAVY)
    assert "include" in added  # the file was really run


@pytest.mark.parametrize("path", DAG_FILES, ids=lambda path: path.stem)
def test_is_short(path):
    assert len(path.read_text().splitlines()) <= 80
