"""Every path on S3, over HTTP: files, missed hours, holds, the controller, the doctor; and what must be refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from local_s3 import s3_environment, s3_server

from include.atomic_write import write_json
from include.control.holds import HoldStore
from include.flink.raw_format import hour_directory, write_lines
from include.maintenance.lake_upkeep import keep_up_lake
from include.missed_hours import find_missed_hours
from include.place import ObjectPath, place
from include.raw_files import list_file_hours
from include.raw_lines import read_text_lines
from include.settings import load_settings
from include.utc import Interval

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDING = REPOSITORY / "data" / "recording"
HOUR = datetime(2026, 11, 20, 18, tzinfo=UTC)
pytestmark = pytest.mark.long


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A server that lets one key in; every path lies on it."""
    with s3_server("--key", "test-key") as address:
        for name, value in s3_environment(address).items():
            monkeypatch.setenv(name, value)
        yield address


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = (
        os.environ | {"TIDEWISE__SPARK__MASTER": "local[1]", "TIDEWISE__SPARK__DRIVER_MEMORY": "1g"} | variables
    )
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )


def errors_of_doctor(**variables: str) -> dict[str, str]:
    """Return part and check -> text and remedy of what the doctor calls an error."""
    done = run("cli.console", "doctor", "--json", "--no-airflow", **variables)
    findings = json.loads(done.stdout)["findings"]
    errors = [one for one in findings if one["level"] == "error"]
    result = {f"{one['part']} {one['check']}": f"{one['text']}; {one['remedy']}" for one in errors}
    assert bool(result) == bool(done.returncode)
    return result


def test_an_object_has_the_methods_of_a_path(address: str) -> None:
    settings = load_settings()
    root = place(settings.paths.raw)
    assert isinstance(root, ObjectPath)
    assert not root.exists()
    folder = hour_directory(root, "c", HOUR)
    write_lines(folder / "poll-1.jsonl.gz", ["{}", "[]"])
    write_json(folder / "noted.json", {"a": 1})
    assert root.is_dir()
    assert [path.name for path in folder.iterdir()] == ["noted.json", "poll-1.jsonl.gz"]
    assert list(root.glob("cluster=*/date=*/hour=*")) == [folder]
    assert list_file_hours(root) == [HOUR]
    assert list(read_text_lines(folder / "poll-1.jsonl.gz")) == ["{}", "[]"]
    with pytest.raises(TypeError, match="no file of this machine"):
        open(folder / "noted.json")  # noqa: PTH123, SIM115
    (folder / "noted.json").unlink()
    with pytest.raises(FileNotFoundError):
        (folder / "noted.json").read_text()


def test_missed_hours_are_found_and_old_days_go(address: str) -> None:
    settings = load_settings()
    write_lines(hour_directory(place(settings.paths.raw), "c", HOUR) / "poll-1.jsonl.gz", ["{}"])
    until = HOUR + timedelta(hours=3)
    assert find_missed_hours(settings, until) == [Interval(HOUR, HOUR + timedelta(hours=1))]
    settings = settings.model_copy(update={"retention": settings.retention.model_copy(update={"raw_days": 7})})
    kept = keep_up_lake(settings, HOUR + timedelta(days=30), applies=True)
    assert list(kept.kept_days.values()) == [
        "1 files were not ingested as they are, cluster=c/date=2026-11-20/hour=18/poll-1.jsonl.gz for one"
    ]
    assert kept.failures == {}


def test_a_hold_reaches_the_controller_over_http(address: str) -> None:
    done = run("cli.console", "hold", "--reason", "test")
    assert "everything is on hold" in done.stderr + done.stdout
    (hold,) = HoldStore(load_settings().paths.lake).read(time.time())
    assert hold.reason == "test"
    released = run("cli.console", "release", "--all")
    assert released.returncode == 0, released.stderr


def test_every_green_doctor_is_followed_by_a_green_stage_and_every_fault_is_named(address: str) -> None:
    assert errors_of_doctor() == {}
    copied = run("cli.collect", "--files", str(RECORDING))
    assert copied.returncode == 0, copied.stderr
    end = list_file_hours(place(load_settings().paths.raw))[-1] + timedelta(hours=1)
    stage = ingest(end)
    assert stage.returncode == 0, stage.stderr[-2000:]
    missing = ingest(end, TIDEWISE__PATHS__RAW="s3://lake/nowhere")
    assert missing.returncode != 0
    assert "are gone or hold less" in missing.stdout + missing.stderr
    assert errors_of_doctor(AWS_ACCESS_KEY_ID="wrong").keys() >= {"lake write", "S3 Spark writes"}
    jars = errors_of_doctor(TIDEWISE__SPARK__JARS_DIR="/nowhere")
    assert "make setup EXTRA=s3" in " ".join(jars.values()), jars
    with s3_server("--ignores-conditions") as careless:
        faults = errors_of_doctor(**s3_environment(careless))
    assert {"lake conditional write", "S3 Spark refuses a second commit"} <= faults.keys()


def ingest(end: datetime, **variables: str) -> subprocess.CompletedProcess[str]:
    """Ingest the hour before a time as Airflow does, through spark-submit."""
    from include.spark.submission import prepare_submission
    from include.stage_request import Stage, StageRequest
    from lab.commands.spark_application import form_argv

    environment = os.environ | {"TIDEWISE__SPARK__DRIVER_MEMORY": "2g", "SPARK_LOCAL_IP": "127.0.0.1"} | variables
    submission = prepare_submission(load_settings(), "local[1]")
    request = StageRequest(Stage.INGEST, end, end - timedelta(hours=1), end)
    return subprocess.run(
        submission.command(form_argv([request])),
        env=environment | submission.environment | variables,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
