"""What strangers did to ingestion, all at once: each case is one cluster, and harms no other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from include.tables import (
    BRONZE_JOB_EVENTS,
    BRONZE_METRICS,
    FILES,
    JOB_GRAPHS,
    OBSERVATIONS,
    OPERATOR_KEYS,
    QUALITY,
    QUARANTINE,
)
from lab.stages.inputs.source_series import SourceWindows, read_source_loads, source_series
from lab.stages.inputs.windows import windows_between
from models.polling.job_layout import name_operators
from models.polling.job_replies import Vertex
from spark_jobs.job_history.operator_names import operators_of
from spark_jobs.source_inputs.renames import follow_renames, read_renames
from spark_jobs.source_inputs.source_windows import HistoryBins
from tests.spark.hostile_input import (
    BAD_REPLIES,
    HOUR,
    MISPLACED,
    ODD_NAMES,
    OTHER_ID,
    START,
    WINDOWS,
    polled,
)
from tests.spark.ingested_lake import IngestedLake
from tests.spark.raw_builders import JOB_ID, SINK, SOURCE, WORK
from tests.spark.situations import Situations

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Ingested(IngestedLake):
    """What one run made of all situations."""

    def windows(self, cluster: str) -> list[tuple[str, Any, int, float, bool]]:
        """What the windows of the first hour say, in order."""
        columns = ("operator", "window_start", "parallelism", "observed_processing_rate_per_s", "disturbed")
        rows = [row for row in self.rows(OBSERVATIONS, cluster) if row["hour"] == START.hour and row["job"] == "orders"]
        return sorted(tuple(row[column] for column in columns) for row in rows)


@pytest.fixture(scope="module")
def ingested(situations: Situations) -> Ingested:
    return Ingested(situations.lake, situations.summary)


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
    rows = [([(one, text, 1) for one, text in zip(ids, some, strict=True)],) for some in lists]
    frame = spark.createDataFrame(rows, "vertices ARRAY<STRUCT<id: STRING, name: STRING, parallelism: INT>>")
    result = frame.select("vertices", operators_of(F.col("vertices")).alias("operators")).collect()
    for row in result:
        vertices = [Vertex(one["id"], one["name"], 1, 128, "RUNNING") for one in row["vertices"]]
        ours = {one["vertex_id"]: one["operator"] for one in row["operators"]}
        assert ours == name_operators(vertices)
        assert len(set(ours.values())) == len(ours)
    assert len(result) == len(lists)


@pytest.mark.covers("ingest_review 1.3")
def test_any_legal_file_name_is_read(ingested: Ingested) -> None:
    assert ingested.windows("files") == ingested.windows("good")
    names = {row["source_file"].rpartition("/")[2] for row in ingested.rows(BRONZE_METRICS, "files")}
    assert names <= {*ODD_NAMES, "caf\\xe9.jsonl.gz"}
    files = {row["source_file"].rpartition("/")[2]: row for row in ingested.rows(FILES, "files")}
    assert {name for name, row in files.items() if row["reason"] is None} == {*ODD_NAMES, "caf\\xe9.jsonl.gz"}


@pytest.mark.covers("ingest_review 1.4", "ingest_review 2.8")
def test_what_cannot_be_read_or_lies_in_the_wrong_place_is_named(ingested: Ingested) -> None:
    rows = ingested.lake.read(QUARANTINE).where("line_number IS NULL").collect()
    result = {(row["reason"], row["source_file"]) for row in rows if "files" in row["source_file"]}
    assert {name for reason, name in result if reason == "misplaced_file"} == MISPLACED
    hour = "cluster=files/date=2026-11-20/hour=10"
    unreadable = {name for reason, name in result if reason == "unreadable_file"}
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


def count_measured(series: Row, frame: HistoryBins) -> int:
    """Return of how many windows of a source the demand is known."""
    windows = SourceWindows.of(series["start_s"], series["window_s"], series["demand_per_s"])
    return len(windows.select_measured(frame).start_s)


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
    result = {tuple(row) for row in renames.collect()}
    assert result == {("redeployed", "orders", SOURCE, vertex_id, new) for vertex_id in (None, "1" * 32)}
    frame = HistoryBins(end.timestamp(), int(START.timestamp()), 300, 2 * WINDOWS)
    history = follow_renames(read_source_loads(ingested.lake, frame), renames)
    (series,) = source_series(history, frame).where("cluster = 'redeployed'").collect()
    assert series["operator"] == new
    assert count_measured(series, frame) == 2 * (WINDOWS - 1)  # the first of each id has no rate


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
    retained = {row["source_file"]: row["kept"] for row in files.where("lines > 0").collect()}
    stored = (
        ingested.lake.read(BRONZE_METRICS)
        .select("source_file")
        .unionByName(ingested.lake.read(BRONZE_JOB_EVENTS).select("source_file"))
    )
    assert {row["source_file"]: row["count"] for row in stored.groupBy("source_file").count().collect()} == retained
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
    frame = HistoryBins(end.timestamp(), int(START.timestamp()), 300, WINDOWS)
    series = source_series(read_source_loads(ingested.lake, frame), frame).collect()
    counted = {row["cluster"]: count_measured(row, frame) for row in series}
    assert (counted["held"], counted["good"]) == (0, WINDOWS - 1)  # the first has no rate
    windows = windows_between(observations, START, end).where(F.col("operator") == SOURCE)
    targets = windows.groupBy("cluster").agg(F.count("target_data_rate_per_s").alias("known")).collect()
    known = {row["cluster"]: row["known"] for row in targets}
    assert (known["held"], known["good"]) == (0, WINDOWS - 1)


def test_a_share_of_time_that_was_not_measured_is_unknown(ingested: Ingested) -> None:
    rows = [row for row in ingested.rows(OBSERVATIONS, "unmeasured") if row["operator"] == WORK]
    assert len(rows) == WINDOWS
    for name in ("busy_share", "busy_share_max", "idle_share", "backpressured_share", "true_processing_rate_per_s"):
        assert {row[name] for row in rows} == {None}, name
