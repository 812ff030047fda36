"""An hour that is ingested again when its raw files are gone keeps its rows, unless the run is forced."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include.flink.raw_format import hour_directory
from include.lost_input import LostInputError
from include.raw_files import LocalFiles
from include.settings import Settings
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.tables import FILES, INGESTED, OBSERVATIONS
from spark_jobs.ingest import stage as ingest
from spark_jobs.lake import Lake
from tests.spark.raw_builders import PolledJob, utc, write

pytestmark = [pytest.mark.spark, pytest.mark.long]
START = utc("2026-11-20T10:00")
HOUR = timedelta(hours=1)


def run(spark: SparkSession, settings: Settings, start=START, hours: int = 1, *, is_forced: bool = False) -> None:
    end = start + hours * HOUR
    ingest.run(spark, settings, StageRequest(Stage.INGEST, end, start, end, is_forced=is_forced))


def contents(lake: Lake) -> dict[str, list[str]]:
    return {table.name: sorted(map(str, lake.read(table).collect())) for table in INGESTED}


@pytest.fixture(scope="module")
def world(spark: SparkSession, shared_settings: Settings, shared_lake: Lake) -> tuple[Settings, Lake, Path, Path]:
    """Two clusters with two hours each; of the first hour, one file lies in the directory of the second (late)."""
    raw = Path(shared_settings.paths.raw)
    for cluster in ("c5m", "other"):
        job = PolledJob(running_at=START - HOUR, cluster=cluster)
        lines = job.hour(START)
        write(raw, START, lines[:-8], cluster=cluster)
        write(raw, START + HOUR, lines[-8:], cluster=cluster, name="late.jsonl.gz")
        write(raw, START + HOUR, job.hour(START + HOUR), cluster=cluster)
    run(spark, shared_settings, hours=2)
    retained = raw.with_name("kept")
    shutil.copytree(raw, retained)
    return shared_settings, shared_lake, raw, retained


def remove_all(raw: Path) -> None:
    shutil.rmtree(raw)


def empty_root(raw: Path) -> None:
    shutil.rmtree(raw)
    raw.mkdir()


def remove_cluster(raw: Path) -> None:
    shutil.rmtree(raw / "cluster=other")


def remove_late(raw: Path) -> None:
    (hour_directory(raw, "c5m", START + HOUR) / "late.jsonl.gz").unlink()


def cut_short(raw: Path) -> None:
    (hour_directory(raw, "c5m", START) / "a.jsonl.gz").write_bytes(b"")


def replace_with_less(raw: Path) -> None:
    write(raw, START, PolledJob(running_at=START - HOUR).hour(START)[:5])


def replace_with_another(raw: Path) -> None:
    """As a backfill writes it after the collected files have gone."""
    (hour_directory(raw, "c5m", START) / "a.jsonl.gz").unlink()
    write(raw, START, PolledJob(running_at=START - HOUR).hour(START), name="prometheus-20261120T10.jsonl.gz")


def long(*values: object) -> object:
    return pytest.param(*values, marks=pytest.mark.long)


@pytest.mark.covers("harm input-gone", "harm input-less")
@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (empty_root, "4 raw files of which the lake has rows"),
        long(remove_late, "cluster=c5m/date=2026-11-20/hour=11/late.jsonl.gz"),
        long(replace_with_less, "5 of 41 lines are left"),
        long(remove_all, "is not among the files"),
        long(remove_cluster, "cluster=other/date=2026-11-20/hour=10/a.jsonl.gz"),
        long(cut_short, "empty_file"),
        long(replace_with_another, "cluster=c5m/date=2026-11-20/hour=10/a.jsonl.gz"),
    ],
)
def test_rows_whose_files_are_gone_are_kept(
    spark: SparkSession, world: tuple[Settings, Lake, Path, Path], harm: Callable[[Path], None], named: str
) -> None:
    settings, lake, raw, retained = world
    before = {table.name: lake.version(table) for table in INGESTED}
    harm(raw)
    try:
        with pytest.raises(LostInputError) as raised:
            run(spark, settings)
        assert named in str(raised.value)
        assert {table.name: lake.version(table) for table in INGESTED} == before
    finally:
        shutil.rmtree(raw, ignore_errors=True)
        shutil.copytree(retained, raw)


def test_a_new_hour_of_a_folder_that_is_not_mounted_is_no_hour_without_files(
    spark: SparkSession, world: tuple[Settings, Lake, Path, Path]
) -> None:
    """Later nobody would ask for it once it is older than `ingest.missed_hours_days`."""
    settings, lake, raw, retained = world
    empty_root(raw)
    try:
        with pytest.raises(LostInputError, match="nor is any other of this day"):
            run(spark, settings, START + 5 * HOUR)
    finally:
        shutil.copytree(retained, raw, dirs_exist_ok=True)
    run(spark, settings, START + 5 * HOUR)  # nothing was collected in it
    assert lake.read(FILES).count() == 6


@pytest.mark.long
def test_a_forced_run_keeps_what_the_files_that_are_left_say(
    spark: SparkSession, world: tuple[Settings, Lake, Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    settings, lake, raw, retained = world
    before = lake.read(OBSERVATIONS).where("cluster = 'c5m'").count()
    remove_cluster(raw)
    try:
        run(spark, settings, hours=2, is_forced=True)
    finally:
        shutil.copytree(retained, raw, dirs_exist_ok=True)
    assert "forced: 3 raw files of which the lake has rows" in caplog.text
    assert lake.read(OBSERVATIONS).where("cluster = 'other'").count() == 0
    assert lake.read(OBSERVATIONS).where("cluster = 'c5m'").count() == before > 0
    assert lake.read(FILES).where("cluster = 'other'").count() == 0


@pytest.mark.covers("harm worker-without-files")
def test_a_worker_that_lacks_the_folder_has_not_read_empty_files(
    spark: SparkSession, settings: Settings, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor at the first ingestion: later nobody would ask for the files again."""
    write(Path(settings.paths.raw), START, PolledJob(running_at=START - HOUR).hour(START))
    # The driver lists them; where they are read, there are none.
    monkeypatch.setattr(LocalFiles, "locate", lambda self, place: (os.fsencode(f"/not mounted/{place}"), ""))
    with pytest.raises(LostInputError, match=r"1 raw files .* cannot be read: FileNotFoundError"):
        run(spark, settings)
    assert lake.read(FILES).count() == 0
