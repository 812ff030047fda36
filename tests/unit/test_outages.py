"""What becomes of the jobs while something that Tidewise needs is down: docs/reliability.md has a sentence for each."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from control_entries import NOW_S, TWO
from willing_flink import WillingFlink

from controller.decisions.job_control import JobControl, JobTask
from controller.log.control_log import LogEntry
from controller.view.champion import ChampionReader
from include.settings import PROJECT, Mlflow
from models.control.limits import Limits
from models.control.state import Intention, JobHistory, Mode, ObservedJob, Origin

JOB = "live/orders"
AUTO = Limits(mode=Mode.AUTO)
WANTED = Intention({"a": 4, "b": 4}, Origin.PLAN, "step-1", "load rises", NOW_S + 600)


class Flink(WillingFlink):
    """A cluster that would do at once whatever it is asked for."""

    def __init__(self) -> None:
        self.sent: list[object] = []

    def observe(self, job: str) -> ObservedJob:
        return ObservedJob("j", "RUNNING", dict(TWO), dict(TWO), free_slots=8)

    def request(self, job: str, job_id: str, parallelism: object) -> None:
        self.sent.append(parallelism)


class LostLake:
    """A log whose lake is gone: what is known stays known, and nothing can be written."""

    def append_all(self, entries: Sequence[LogEntry]) -> None:
        raise OSError(5, "the lake does not answer")

    def append(self, entry: LogEntry) -> None:
        self.append_all([entry])

    def read_history(self, job: str) -> JobHistory:
        return JobHistory(job_id="j", known_requested=TWO)

    def read_last(self, job: str) -> None:
        return None

    def read_open(self) -> dict[str, LogEntry]:
        return {}


def test_while_the_lake_is_down_nothing_is_sent() -> None:
    flink = Flink()
    controller = JobControl(flink, LostLake(), lambda: None, lambda: NOW_S)
    with pytest.raises(OSError, match="the lake does not answer"):
        controller.control_jobs([JobTask(JOB, WANTED, lambda: AUTO)])
    assert flink.sent == []


@pytest.mark.covers("harm mlflow-down")
def test_while_mlflow_is_down_the_controller_keeps_its_models_and_does_not_wait() -> None:
    pytest.importorskip("mlflow")  # its import takes seconds, which are not counted
    reader = ChampionReader(Mlflow(tracking_uri="http://127.0.0.1:9"))
    reader.bundle = known = object()  # type: ignore[assignment]
    began_s = time.monotonic()
    reader.refresh()
    assert time.monotonic() - began_s < 10.0
    assert reader.bundle is known


def test_the_controller_needs_no_airflow() -> None:
    code = "import controller.command, sys; sys.exit('airflow' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=PROJECT, env={"PYTHONPATH": str(PROJECT)}, check=True)


def test_each_outage_has_a_sentence_and_a_test() -> None:
    page = (PROJECT / "docs" / "reliability.md").read_text()
    table = page.split("## While something is down", 1)[1].split("##", 1)[0]
    rows = [line.split("|")[1:4] for line in table.splitlines() if line.startswith("| ") and "`tests/" in line]
    assert [row[0].strip() for row in rows] == [
        "the controller",
        "the lake",
        "MLflow",
        "Airflow",
        "Prometheus",
        "Flink",
    ]
    for name, sentence, tests in rows:
        assert sentence.strip().endswith("."), name
        for test in tests.split("`")[1::2]:
            file, _, function = test.partition("::")
            assert f"def {function}(" in Path(PROJECT, file).read_text(), test
