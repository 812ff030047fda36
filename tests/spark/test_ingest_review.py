"""What strangers did to ingestion, all at once: each case is one cluster, and harms no other."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from include.flink.raw_format import Kind, hour_directory
from include.raw_files import walk
from include.settings import SETTINGS_FILE_VARIABLE, Cluster, Settings
from include.stages import Stage, StageRequest
from include.tables import (
    BRONZE_JOB_EVENTS,
    BRONZE_METRICS,
    FILES,
    JOB_GRAPHS,
    OBSERVATIONS,
    OPERATOR_KEYS,
    QUALITY,
    QUARANTINE,
    Table,
)
from models.live.job_layout import name_operators
from models.live.job_replies import Vertex
from spark_jobs.ingest import stage as ingest
from spark_jobs.job_history.operator_names import operators_of
from spark_jobs.job_inputs.renames import follow_renames, read_renames
from spark_jobs.job_inputs.source_series import HistoryFrame, source_series
from spark_jobs.job_inputs.windows import windows_between
from spark_jobs.lake import Lake
from spark_jobs.raw_parsing.numbered_lines import read_lines
from spark_jobs.raw_parsing.raw_contents import read_contents
from spark_jobs.raw_parsing.raw_files import HadoopFiles, list_files
from tests.spark.lake_settings import settings_below
from tests.spark.raw_builders import (
    JOB_ID,
    SINK,
    SOURCE,
    VERTEX_IDS,
    WORK,
    PolledJob,
    checkpoints_body,
    exceptions_body,
    job_body,
    metric,
    ms,
    plan_body,
    record,
    utc,
    write,
)

pytestmark = pytest.mark.spark
START = utc("2026-11-20T10:00")
HOUR = timedelta(hours=1)
HOURS = 2
OTHER_ID = "b" * 32
WINDOWS = 12  # of an hour
NAMES = {SOURCE: "x", WORK: "x", SINK: "x (11111111)"}
ODD_NAMES = ["a[1].jsonl.gz", "b{2,3}.jsonl.gz", "c\\4.jsonl.gz", "d:5.jsonl.gz", "e*+%41 ?.jsonl.gz", "f\n.jsonl.gz"]
LATIN = os.fsdecode(b"caf\xe9.jsonl.gz")


@dataclass(frozen=True)
class Ingested:
    """Everything that one run made of it."""

    settings: Settings
    lake: Lake
    summary: dict[str, object]

    def rows(self, table: Table, cluster: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in self.lake.read(table).where(F.col("cluster") == cluster).collect()]

    def reasons(self, cluster: str) -> dict[str, int]:
        found = self.lake.read(QUARANTINE).where(F.col("cluster") == cluster).groupBy("reason").count().collect()
        return {row["reason"]: row["count"] for row in found}

    def windows(self, cluster: str) -> list[tuple[str, Any, int, float, bool]]:
        """What the windows of the first hour say, in order."""
        columns = ("operator", "window_start", "parallelism", "observed_processing_rate_per_s", "disturbed")
        rows = [row for row in self.rows(OBSERVATIONS, cluster) if row["hour"] == START.hour and row["job"] == "orders"]
        return sorted(tuple(row[column] for column in columns) for row in rows)


def polled(cluster: str, **options: Any) -> PolledJob:
    return PolledJob(running_at=START - HOUR, cluster=cluster, **options)


def at(minute: float) -> Any:
    return START + timedelta(minutes=minute)


def renamed(line: str, names: dict[str, str | None]) -> str:
    """Give the vertices of a job reply other names; None takes the name away."""
    envelope = json.loads(line)
    if envelope["kind"] != Kind.JOB:
        return line
    body = json.loads(envelope["body"])
    for vertex in body["vertices"]:
        vertex["name"] = names[vertex["name"]]
        if vertex["name"] is None:
            del vertex["name"]
    return json.dumps({**envelope, "body": json.dumps(body)}, separators=(",", ":"))


def job_line(cluster: str, minute: float, change: Callable[[dict[str, Any]], object], **options: Any) -> str:
    """A job reply at some minute that was changed."""
    body = job_body({SOURCE: 1, WORK: 2, SINK: 1}, START - HOUR, **options)
    change(body)
    return record(at(minute), Kind.JOB, body, cluster=cluster)


def write_bad_replies(raw: Path) -> None:
    cluster = "replies"

    def without_id(body: dict[str, Any]) -> None:
        body["plan"] = plan_body()["plan"]
        body["vertices"][1]["id"] = None

    def stamped(**times: int) -> Callable[[dict[str, Any]], object]:
        return lambda body: body["timestamps"].update(times)

    year_9999, in_seconds = 253_402_300_000_000, int(START.timestamp())
    checkpoints = checkpoints_body(at(20), START + timedelta(days=400))
    failures = exceptions_body((START + timedelta(days=400), "lost"))
    lines = [
        *polled(cluster).hour(START),
        job_line(cluster, 21, without_id),
        job_line(cluster, 22, lambda body: body["vertices"][1].pop("id")),
        job_line(cluster, 23, lambda body: body["vertices"][1].update(id=body["vertices"][0]["id"])),
        job_line(cluster, 24, lambda body: body["vertices"][1].update(id="short")),
        job_line(cluster, 25, lambda body: body.update(jid=OTHER_ID)),
        job_line(cluster, 26, lambda body: body.update(name="")),
        job_line(cluster, 59.9, stamped(RUNNING=year_9999)),
        job_line(cluster, 59.91, stamped(RUNNING=1000 * ms(START))),
        job_line(cluster, 59.92, stamped(RUNNING=in_seconds)),
        job_line(cluster, 59.93, stamped(FAILED=year_9999)),
        record(at(40), Kind.CHECKPOINTS, checkpoints, cluster=cluster),
        record(at(41), Kind.EXCEPTIONS, failures, cluster=cluster),
        record(
            at(42),
            Kind.PLAN,
            plan_body({SOURCE: [], WORK: [SOURCE], SINK: ["gone"]}, {**VERTEX_IDS, "gone": "9" * 32}),
            cluster=cluster,
        ),
        record(at(43), Kind.JOB_METRICS, '[{"id":"uptime"}] [1]', cluster=cluster),
        record(at(44), Kind.JOB, '{"name":"a"}{"name":"b"}', cluster=cluster),
        record(at(45), Kind.CHECKPOINTS, "[]", cluster=cluster),
    ]
    write(raw, START, lines, cluster=cluster)


BAD_REPLIES = {
    "wrong_type": 4,
    "bad_id": 1,
    "job_mismatch": 1,
    "missing_field": 1,
    "time_out_of_range": 6,
    "bad_graph": 1,
    "malformed_json": 2,
}


def write_bad_lines(raw: Path) -> None:
    cluster = "lines"
    job = polled(cluster)
    one, two = job.vertex_line(WORK, at(31)), job.vertex_line(WORK, at(32))
    joined = [one + between + two for between in ("", " ", "\t", ",", " , ")]
    torn = [one[:50]] * 3
    lines = [line.encode() for line in [*job.hour(START), *joined, *torn]]
    invalid = b'{"observed_at_ms":1,"note":"caf\xe9"}'
    path = hour_directory(raw, cluster, START) / "a.jsonl.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(b"\n".join([*lines, invalid, b"", invalid]), mtime=0))


def write_odd_files(raw: Path) -> None:
    cluster = "files"
    lines = polled(cluster).hour(START)
    names = [*ODD_NAMES, LATIN]
    for number, name in enumerate(names):
        write(raw, START, lines[number :: len(names)], cluster=cluster, name=name)
    hour = hour_directory(raw, cluster, START)
    (hour / "gone.jsonl.gz").symlink_to("nowhere")
    (hour / "loop.jsonl.gz").symlink_to("loop.jsonl.gz")
    os.mkfifo(hour / "pipe.jsonl.gz")
    (hour / "folder.jsonl.gz").mkdir()
    for name in ("b.json.gz", "B.JSONL.GZ", "c.jsonl.zip"):
        (hour / name).write_bytes(b"x")
    (hour / ".d.jsonl.gz.tmp").write_bytes(b"x")  # a writer's
    (hour.parent / "hour=24").mkdir()
    (hour.parent / "hour=9").symlink_to(hour.parent)
    (hour.parent.parent / "Date=2026-11-20").mkdir()
    (hour.parent.parent / "date=2026-11-31").mkdir()
    (raw / "CLUSTER=files").mkdir()


MISPLACED = {
    "cluster=files/date=2026-11-20/hour=10/folder.jsonl.gz",
    "cluster=files/date=2026-11-20/hour=10/b.json.gz",
    "cluster=files/date=2026-11-20/hour=10/B.JSONL.GZ",
    "cluster=files/date=2026-11-20/hour=10/c.jsonl.zip",
    "cluster=files/date=2026-11-20/hour=24",
    "cluster=files/date=2026-11-20/hour=9",
    "cluster=files/Date=2026-11-20",
    "cluster=files/date=2026-11-31",
    "CLUSTER=files",
}


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[3 * len(content) // 4] ^= 0x10
    path.write_bytes(bytes(content))


def held_up(job: PolledJob, line: str) -> str:
    """Take the backlog away, and let the source of a job wait for its outputs."""
    envelope = json.loads(line)
    if envelope["vertex_id"] != VERTEX_IDS[SOURCE]:
        return line
    kept = [one for one in json.loads(envelope["body"]) if "pending" not in one["id"] and "Time" not in one["id"]]
    shares = {"busy": 10.0, "idle": 10.0, "backPressured": 980.0}
    body = [*kept, *(metric(f"{name}TimeMsPerSecond", share) for name, share in shares.items())]
    return json.dumps({**envelope, "body": json.dumps(body)})


def unmeasured(line: str) -> str:
    """Take the time shares of a vertex away."""
    envelope = json.loads(line)
    if envelope["vertex_id"] != VERTEX_IDS[WORK]:
        return line
    body = [one for one in json.loads(envelope["body"]) if "Time" not in one["id"]]
    return json.dumps({**envelope, "body": json.dumps(body)})


@pytest.fixture(scope="module")
def ingested(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ingested:
    root = tmp_path_factory.mktemp("review")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SETTINGS_FILE_VARIABLE, str(root / "none.toml"))
        settings = settings_below(root).model_copy(update={"clusters": {"good": Cluster(window_s=300)}})
    raw = Path(settings.paths.raw)
    write(raw, START, polled("good").hour(START), cluster="good")
    write_bad_replies(raw)
    write_bad_lines(raw)
    write_odd_files(raw)
    named = [renamed(line, NAMES) for line in polled("names").hour(START)]
    write(raw, START, named, cluster="names")
    nameless = [renamed(line, {SOURCE: SOURCE, WORK: None, SINK: ""}) for line in polled("nameless").hour(START)]
    write(raw, START, nameless, cluster="nameless")
    extra = job_line("othername", 27, lambda body: body.update(name="other"))
    write(raw, START, [*polled("othername").hour(START), extra], cluster="othername")
    twins = polled("twins").hour(START)
    slower = [line.replace(JOB_ID, OTHER_ID) for line in polled("twins", rate_per_s=40.0).hour(START)]
    write(raw, START, [*twins, *slower], cluster="twins")
    # Redeployed under a new id at eleven: a chain has one more operator.
    chain = {SOURCE: f"{SOURCE} -> parse", WORK: WORK, SINK: SINK}
    write(raw, START, polled("redeployed").hour(START), cluster="redeployed")
    second = PolledJob(running_at=START + HOUR + timedelta(seconds=30), cluster="redeployed").hour(START + HOUR)
    write(raw, START + HOUR, [renamed(line.replace(JOB_ID, OTHER_ID), chain) for line in second], cluster="redeployed")
    flip_bit(write(raw, START, polled("flipped").hour(START), cluster="flipped"))
    job = polled("held")
    write(raw, START, [held_up(job, line) for line in job.hour(START)], cluster="held")
    write(raw, START, [unmeasured(line) for line in polled("unmeasured").hour(START)], cluster="unmeasured")
    end = START + HOURS * HOUR
    summary = ingest.run(spark, settings, StageRequest(Stage.INGEST, end, START, end))
    return Ingested(settings, Lake(spark, settings.paths.lake), summary)


@pytest.mark.covers("ingest_review 1.1", "ingest_review 1.2", "ingest_review 2.10", "apply_review 17")
def test_a_reply_that_cannot_be_is_quarantined_and_its_job_goes_on(ingested: Ingested) -> None:
    assert ingested.reasons("replies") == BAD_REPLIES
    good = ingested.windows("good")
    assert len(good) == 3 * WINDOWS
    assert ingested.windows("replies") == good


@pytest.mark.covers("ingest_review 1.1", "apply_review 5")
def test_operators_of_one_name_have_names_of_their_own(ingested: Ingested) -> None:
    assert ingested.reasons("names") == {}
    named = {row["vertex_id"][0]: row["operator"] for row in ingested.rows(OBSERVATIONS, "names")}
    assert named == {"1": f"x ({'1' * 32})", "2": "x (22222222)", "3": f"x (11111111) ({'3' * 32})"}
    graph = {row["operator"]: row["upstream"] for row in ingested.rows(JOB_GRAPHS, "names")}
    assert graph == {named["1"]: [], named["2"]: [named["1"]], named["3"]: [named["2"]]}
    nameless = {row["vertex_id"][0]: row["operator"] for row in ingested.rows(OBSERVATIONS, "nameless")}
    assert nameless == {"1": SOURCE, "2": "(22222222)", "3": "(33333333)"}


@pytest.mark.covers("ingest_review 1.1")
def test_spark_and_the_live_windows_name_operators_alike(spark: SparkSession) -> None:
    ids = [f"{digit}{'0' * 31}" for digit in "abcd"]
    texts = ["x", "", "x (a0000000)", f"x ({ids[0]})", f"x ({ids[1]}) ({ids[3]})", "(b0000000)"]
    lists = [[a, b, c, d] for a in texts for b in texts for c in texts for d in ("x", texts[4])]
    rows = [([(one, text) for one, text in zip(ids, some, strict=True)],) for some in lists]
    frame = spark.createDataFrame(rows, "vertices ARRAY<STRUCT<id: STRING, name: STRING>>")
    found = frame.select("vertices", operators_of(F.col("vertices")).alias("operators")).collect()
    for row in found:
        vertices = [Vertex(one["id"], one["name"], 1, 128, "RUNNING") for one in row["vertices"]]
        ours = {one["vertex_id"]: one["operator"] for one in row["operators"]}
        assert ours == name_operators(vertices)
        assert len(set(ours.values())) == len(ours)
    assert len(found) == len(lists)


@pytest.mark.covers("ingest_review 1.3")
def test_any_legal_file_name_is_read(ingested: Ingested) -> None:
    assert ingested.windows("files") == ingested.windows("good")
    names = {row["source_file"].rpartition("/")[2] for row in ingested.rows(BRONZE_METRICS, "files")}
    assert names <= {*ODD_NAMES, "caf\\xe9.jsonl.gz"}
    files = {row["source_file"].rpartition("/")[2]: row for row in ingested.rows(FILES, "files")}
    assert {name for name, row in files.items() if row["reason"] is None} == {*ODD_NAMES, "caf\\xe9.jsonl.gz"}


@pytest.mark.covers("ingest_review 1.3", "ingest_review 1.4")
def test_hadoop_reads_any_name_that_it_can_write_down(ingested: Ingested, spark: SparkSession) -> None:
    """As for a root that is not mounted here; bytes that are no UTF-8 are beyond it."""
    files = HadoopFiles(spark, ingested.settings.paths.raw)
    readable = [file for file in walk(files, [START]) if file.is_readable and file.cluster == "files"]
    assert all(file.local_path is None for file in readable)
    by_hadoop = read_lines(read_contents(spark, readable)).groupBy("source_file").count().collect()
    local = [file for file in list_files(spark, ingested.settings.paths.raw, [START]) if file.cluster == "files"]
    by_python = read_lines(read_contents(spark, local)).groupBy("source_file").count().collect()
    named = {row["source_file"]: row["count"] for row in by_hadoop}
    expected = {row["source_file"]: row["count"] for row in by_python if "xe9" not in row["source_file"]}
    assert len(expected) == len(ODD_NAMES)
    assert {name: named.get(name) for name in expected} == expected


@pytest.mark.covers("ingest_review 1.4", "ingest_review 2.8")
def test_what_cannot_be_read_or_lies_in_the_wrong_place_is_named(ingested: Ingested) -> None:
    rows = ingested.lake.read(QUARANTINE).where("line_number IS NULL").collect()
    found = {(row["reason"], row["source_file"]) for row in rows if "files" in row["source_file"]}
    assert {name for reason, name in found if reason == "misplaced_file"} == MISPLACED
    hour = "cluster=files/date=2026-11-20/hour=10"
    unreadable = {name for reason, name in found if reason == "unreadable_file"}
    assert unreadable == {f"{hour}/{name}.jsonl.gz" for name in ("gone", "loop", "pipe")}
    assert f"cluster files, file {hour}/loop.jsonl.gz: unreadable_file (1)" in ingested.summary["refusals"]  # type: ignore[operator]


@pytest.mark.covers("ingest_review 2.5")
def test_another_name_in_one_reply_changes_no_window(ingested: Ingested) -> None:
    assert ingested.windows("othername") == ingested.windows("good")
    assert ingested.reasons("othername") == {}


@pytest.mark.covers("apply_review 14", "ingest_review 2.5")
def test_two_jobs_of_one_name_are_kept_apart(ingested: Ingested) -> None:
    rows = ingested.rows(OBSERVATIONS, "twins")
    rates = {
        (row["job"], row["job_id"], row["observed_processing_rate_per_s"]) for row in rows if row["operator"] == WORK
    }
    assert rates == {("orders (aaaaaaaa)", JOB_ID, 100.0), ("orders (bbbbbbbb)", OTHER_ID, 40.0)}
    assert len(rows) == 2 * 3 * WINDOWS
    assert {row["job"] for row in ingested.rows(JOB_GRAPHS, "twins")} == {"orders (aaaaaaaa)", "orders (bbbbbbbb)"}


@pytest.mark.covers("apply_review 3", "apply_review 14")
def test_a_redeployed_job_keeps_its_name_and_the_history_of_a_renamed_source(ingested: Ingested) -> None:
    rows = ingested.rows(OBSERVATIONS, "redeployed")
    assert {row["job"] for row in rows} == {"orders"}
    assert {row["job_id"] for row in rows} == {JOB_ID, OTHER_ID}
    new = f"{SOURCE} -> parse"
    keys = {(row["hour"], row["operator"], row["vertex_id"][0]) for row in ingested.rows(OPERATOR_KEYS, "redeployed")}
    assert keys == {
        (10, SOURCE, "1"),
        (11, new, "1"),
        *((hour, *one) for hour in (10, 11) for one in ((WORK, "2"), (SINK, "3"))),
    }
    end = START + 2 * HOUR
    renames = read_renames(ingested.lake, START, end)
    assert renames is not None
    assert [tuple(row) for row in renames.collect()] == [("redeployed", "orders", SOURCE, new)]
    frame = HistoryFrame(end.timestamp(), int(START.timestamp()), 300, 2 * WINDOWS)
    history = follow_renames(ingested.lake.read(OBSERVATIONS), renames)
    (series,) = source_series(history, frame).where("cluster = 'redeployed'").collect()
    assert series["operator"] == new
    assert len(series["rate_per_s"]) >= 2 * WINDOWS - 1


@pytest.mark.covers("ingest_review 2.6")
def test_records_that_share_a_line_do_not_go_unseen(ingested: Ingested) -> None:
    reasons = ingested.reasons("lines")
    assert reasons == {"malformed_json": 5 + 3 + 1, "bad_encoding": 2}
    rows = [row for row in ingested.rows(QUARANTINE, "lines") if row["detail"] == "two records on one line"]
    assert len(rows) == 5


@pytest.mark.covers("ingest_review 2.9")
def test_bad_lines_are_counted_one_by_one_and_stored_as_utf8(ingested: Ingested) -> None:
    rows = ingested.rows(QUARANTINE, "lines")
    assert len({row["line_number"] for row in rows}) == len(rows)
    torn = [row for row in rows if row["detail"] == "line" and row["raw"]]
    assert len(torn) == 3
    invalid = [row for row in rows if row["reason"] == "bad_encoding"]
    assert {row["raw"] for row in invalid} == {'{"observed_at_ms":1,"note":"caf\\xe9"}'}
    assert {bytes(row["raw_bytes"]) for row in invalid} == {b'{"observed_at_ms":1,"note":"caf\xe9"}'}
    assert all(row["raw_bytes"] is None for row in rows if row["reason"] != "bad_encoding")


@pytest.mark.covers("ingest_review 2.7")
def test_a_flipped_bit_keeps_the_lines_before_it(ingested: Ingested) -> None:
    reasons = ingested.reasons("flipped")
    assert reasons["corrupt_file"] == 1
    whole = polled("flipped").hour(START)
    (file,) = ingested.rows(FILES, "flipped")
    assert file["reason"] == "corrupt_file"
    assert len(whole) // 2 < file["kept"] <= len(whole)


@pytest.mark.covers("ingest_review 2.9")
def test_every_line_is_kept_a_duplicate_or_quarantined(ingested: Ingested) -> None:
    files = ingested.lake.read(FILES)
    assert files.where("lines <> kept + duplicate + quarantined").isEmpty()
    kept = {row["source_file"]: row["kept"] for row in files.where("lines > 0").collect()}
    stored = (
        ingested.lake.read(BRONZE_METRICS)
        .select("source_file")
        .unionByName(ingested.lake.read(BRONZE_JOB_EVENTS).select("source_file"))
    )
    assert {row["source_file"]: row["count"] for row in stored.groupBy("source_file").count().collect()} == kept
    quality = ingested.lake.read(QUALITY)
    assert quality.where("rows <> kept + duplicate + quarantined").isEmpty()
    totals = {name: ingested.summary[name] for name in ("rows", "kept", "duplicate", "quarantined")}
    assert totals["rows"] == totals["kept"] + totals["duplicate"] + totals["quarantined"]  # type: ignore[operator]
    assert totals["rows"] == sum(row["lines"] for row in files.collect())


@pytest.mark.covers("apply_review 23")
def test_what_a_held_up_source_emits_is_not_taken_for_demand(ingested: Ingested) -> None:
    rows = [row for row in ingested.rows(OBSERVATIONS, "held") if row["operator"] == SOURCE]
    assert len(rows) == WINDOWS
    assert all(row["target_is_lower_bound"] and row["target_data_rate_per_s"] == 100.0 for row in rows)
    others = [
        row for row in ingested.rows(OBSERVATIONS, "good") + ingested.rows(OBSERVATIONS, "held") if row not in rows
    ]
    assert not any(row["target_is_lower_bound"] for row in others)
    observations = ingested.lake.read(OBSERVATIONS)
    end = START + HOUR
    frame = HistoryFrame(end.timestamp(), int(START.timestamp()), 300, WINDOWS)
    rates = {row["cluster"]: row["rate_per_s"] for row in source_series(observations, frame).collect()}
    assert len(rates["held"]) == 0
    assert len(rates["good"]) == WINDOWS
    windows = windows_between(observations, START, end).where(F.col("operator") == SOURCE)
    targets = windows.groupBy("cluster").agg(F.count("target_data_rate_per_s").alias("known")).collect()
    known = {row["cluster"]: row["known"] for row in targets}
    assert (known["held"], known["good"]) == (0, WINDOWS)


def test_a_share_of_time_that_was_not_measured_is_unknown(ingested: Ingested) -> None:
    rows = [row for row in ingested.rows(OBSERVATIONS, "unmeasured") if row["operator"] == WORK]
    assert len(rows) == WINDOWS
    for name in ("busy_share", "busy_share_max", "idle_share", "backpressured_share", "true_processing_rate_per_s"):
        assert {row[name] for row in rows} == {None}, name
