"""Several stages in one application: each leaves its own counts; a failure names its stage and ends what follows."""

from __future__ import annotations

import json
import shutil
import time

import pytest

from cli.embedded import below
from include.settings import SETTINGS_FILE_VARIABLE, SettingsError
from spark_jobs import launch
from spark_jobs.failures import describe_failure
from spark_jobs.train.stage import NothingToLearnError

AS_OF = ["--as-of", "2026-11-20T19:00:00Z"]


@pytest.fixture
def stages(spark, tmp_path, monkeypatch, empty_model_store):
    """The folder with the counts of stages, on an empty lake."""
    shutil.copy(empty_model_store, tmp_path / "mlflow.db")
    (tmp_path / "empty.toml").touch()
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(tmp_path / "empty.toml"))
    for name, value in below(tmp_path).items():
        monkeypatch.setenv(name, value)
    return tmp_path / "stages"


@pytest.mark.long
def test_each_stage_leaves_its_own_counts_and_seconds(stages, capsys):
    began_s = time.monotonic()
    assert launch.main(["forecast", "plan", "report", *AS_OF]) == 0
    took_s = time.monotonic() - began_s
    result = {path.stem: json.loads(path.read_text()) for path in stages.iterdir()}
    assert set(result) == {"forecast", "plan", "report"}
    assert (result["forecast"]["forecasts"], result["plan"]["jobs"], result["report"]["shown"]) == (0, 0, 0)
    assert sum(counts["seconds"] for counts in result.values()) == pytest.approx(took_s, abs=1.0)
    reported = [
        line.split(":")[1] for line in capsys.readouterr().out.splitlines() if line.startswith("tidewise: stage")
    ]
    assert reported == [
        f" stage {name} {what}" for name in ("forecast", "plan", "report") for what in ("starts", "done")
    ]


def test_a_failure_names_its_stage_and_begins_no_later_one(stages, capsys):
    with pytest.raises(NothingToLearnError):
        launch.main(["forecast", "train", "report", *AS_OF])
    assert {path.stem for path in stages.iterdir()} == {"forecast"}
    printed = capsys.readouterr()
    assert "tidewise: stage train failed: NothingToLearnError:" in printed.err
    assert "run it again: forecast train report --as-of 2026-11-20T19:00:00Z" in printed.err
    assert "report" not in printed.out


def test_settings_that_cannot_be_used_are_the_first_stages_failure(stages, monkeypatch, capsys):
    monkeypatch.setenv("TIDEWISE__FORECAST__HORIZON_H", "0")
    with pytest.raises(SettingsError):
        launch.main(["forecast", "plan", *AS_OF])
    assert "tidewise: stage forecast failed: SettingsError:" in capsys.readouterr().err
    assert not stages.exists()


@pytest.mark.covers("ingest_review 1.4")
def test_a_failure_in_java_or_in_a_worker_is_named_by_its_cause(spark):
    with pytest.raises(Exception, match="soon") as in_java:
        spark._jvm.java.lang.Integer.parseInt("soon")
    assert describe_failure(in_java.value) == 'NumberFormatException: For input string: "soon"'

    def refuse(batches):
        raise ValueError("cluster c5m, file a.jsonl.gz: no good")

    with pytest.raises(Exception) as in_worker:  # noqa: PT011 - Spark has a type of its own
        spark.range(1).mapInArrow(refuse, "id BIGINT").collect()
    assert describe_failure(in_worker.value) == "ValueError: cluster c5m, file a.jsonl.gz: no good"
    assert describe_failure(KeyError()) == "KeyError"
