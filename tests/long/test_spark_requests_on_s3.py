"""How many requests Spark makes for the files of a table, and that what spares some leaves commits conditional."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from local_s3 import BUCKET, list_requests, s3_environment, s3_server
from request_kinds import METHODS, table_of_requests

from include.commit_once import commit_path
from include.object_store import open_store
from include.raw_files import FolderError
from include.settings import load_settings
from include.tables import Table
from spark_jobs.lake import Lake
from spark_jobs.raw_parsing.raw_files import HadoopFiles
from spark_jobs.session import start_session
from spark_jobs.try_storage import try_second_commit
from tools.markdown import format_table

DAYS = 12
TABLE = Table("ops.days", {"key": "STRING", "value": "DOUBLE", "date": "DATE"}, keys=("key",), partition_by=("date",))
HOUR = "cluster=c/date=2026-11-20/hour=10"
FOLDER_MOST = 1
"""Of a folder of raw files; before, it was asked for first whether it is there."""
WRITE_MOST, READ_MOST = 67, 58
"""Of a table of a file for each day. With the client's own checks of the paths of new files the write made 92."""


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with s3_server() as running:
        variables = s3_environment(running) | {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TIDEWISE__SPARK__MASTER": "local[1]",
            "TIDEWISE__SPARK__DRIVER_MEMORY": "1g",
        }
        for name, value in variables.items():
            if "MLFLOW" not in name:
                monkeypatch.setenv(name, value)
        yield running


@pytest.mark.long
def test_spark_looks_for_nothing_where_it_writes_a_new_file(address: str) -> None:
    settings = load_settings()
    spark = start_session(settings, "requests")
    try:
        lake = Lake(spark, settings.paths.lake)
        lake.ensure(TABLE)
        parts: dict[str, list[str]] = {}

        def count(part: str, act: Callable[[], Any]) -> Any:
            list_requests(address)
            result = act()
            parts[part] = list_requests(address)
            return result

        rows = spark.range(3 * DAYS).selectExpr(
            "string(id) key", "double(id) value", f"date_add(date'2026-11-01', int(id % {DAYS})) date"
        )
        rows = rows.coalesce(1)
        slice_ = "date < date'2026-11-05'"
        count("write", lambda: rows.write.format("delta").mode("append").save(lake.path(TABLE)))
        count("replace", lambda: lake.replace(TABLE, rows.filter(slice_), slice_))
        total = count("read", lambda: lake.read(TABLE).selectExpr("sum(value)", "count(key)").collect()[0])
        open_store(settings.paths.raw).put(f"{HOUR}/a.jsonl", b"1234")
        files = HadoopFiles(spark, settings.paths.raw)
        (there,) = count("folder", lambda: files.entries(HOUR))
        assert (there.name, there.is_folder, there.size) == ("a.jsonl", False, 4)
        assert count("no folder", lambda: files.entries("cluster=c/date=2026-11-21")) == []
        with pytest.raises(FolderError):
            HadoopFiles(spark, settings.paths.raw.replace(BUCKET, "no-such-bucket")).entries(HOUR)
        print(format_table(["part", "requests", *METHODS, "most of them"], table_of_requests(parts)))
        assert tuple(total) == (sum(range(3 * DAYS)), 3 * DAYS)
        assert len(parts["write"]) <= WRITE_MOST
        assert len(parts["read"]) <= READ_MOST
        assert len(parts["folder"]) <= FOLDER_MOST
        assert try_second_commit(spark, f"{lake.path(TABLE)}/{commit_path(1)}") == ""
    finally:
        spark.stop()
