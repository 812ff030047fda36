"""Live windows beside silver.observations, from the same raw files: a real recording and a simulated history."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, timedelta
from itertools import groupby
from pathlib import Path

import event_time_job
import live_replies
import numpy as np
import pytest
import source_cases
from pyspark.sql import SparkSession

from include.flink.raw_format import RawRecord, hour_directory, write_lines
from include.settings import SETTINGS_FILE_VARIABLE, Cluster
from include.stage_names import Stage
from include.stage_request import StageRequest
from include.tables import OBSERVATIONS
from lab.commands.history import HistoryRequest, write_history
from models.polling.faults import ReplyFault, Rule
from models.polling.poll_history import PollHistory
from spark_jobs.ingest import stage as ingest
from spark_jobs.lake import Lake
from tests.spark.lake_settings import REPOSITORY, settings_below
from tests.spark.raw_builders import utc
from tools.raw_records import read_records

pytestmark = pytest.mark.spark
END = utc("2026-11-20T20:00")
HOURS = 2
START = END - timedelta(hours=HOURS)
EVENT_TIME = "event_time"  # a cluster of one job, whose source shows no backlog
WINDOW_S = {"recorded": 15, "simulated": 300, source_cases.CLUSTER: 60, EVENT_TIME: 60}
POLLED_EVERY_S = {"recorded": 5, "simulated": 60, source_cases.CLUSTER: source_cases.EVERY_S}
RECORDING = REPOSITORY / "data" / "recording" / "cluster=recorded"
# name in live windows -> column of silver.observations, where they differ
COLUMNS = {
    "processing_rate_per_s": "observed_processing_rate_per_s",
    "output_rate_per_s": "observed_output_rate_per_s",
}
EXACT = ("parallelism", "samples", "disturbed", "is_source", "job_id", "vertex_id", "target_is_lower_bound")
Key = tuple[str, str, str, int]  # cluster, job, operator, window start
Row = dict[str, object]


@dataclass(frozen=True)
class Ingested:
    """What silver holds of the files below a raw root."""

    raw: Path
    rows: dict[Key, Row]


def write_recording(raw: Path) -> None:
    shutil.copytree(RECORDING, raw / RECORDING.name)


def write_simulated_and_cases(raw: Path) -> None:
    write_history(HistoryRequest(HOURS, END, raw, window_s=POLLED_EVERY_S["simulated"]), workers=2)
    hour = hour_directory(raw, source_cases.CLUSTER, START)
    write_lines(hour / "cases.jsonl.gz", (one.to_line() for one in source_cases.records(START)))
    hour = hour_directory(raw, EVENT_TIME, START)
    write_lines(hour / "polls.jsonl.gz", (one.to_line() for one in event_time_records()))


def event_time_records() -> Iterator[RawRecord]:
    began_s = START.timestamp() + 60.0
    later_s, job = began_s - live_replies.T0_S, live_replies.Job(cluster=EVENT_TIME)
    yield from (job.job(later_s - 30.0, running_s=later_s - 60.0), job.plan(later_s - 29.0))
    for at, name, values in event_time_job.polls(began_s, 1.0):
        yield job.metrics(later_s + at, name, **event_time_job.metrics(values))


def ingest_below(root: Path, spark: SparkSession, write_raw: Callable[[Path], None]) -> Ingested:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SETTINGS_FILE_VARIABLE, str(root / "none.toml"))
        clusters = {name: Cluster(window_s=length) for name, length in WINDOW_S.items()}
        settings = settings_below(root).model_copy(update={"clusters": clusters})
        write_raw(Path(settings.paths.raw))
        summary = ingest.run(spark, settings, StageRequest(Stage.INGEST, END, START, END))
    assert not summary["quarantined"]
    rows = {}
    for row in Lake(spark, settings.paths.lake).read(OBSERVATIONS).collect():
        began = int(row["window_start"].replace(tzinfo=UTC).timestamp())
        rows[row["cluster"], row["job"], row["operator"], began] = row.asDict()
    return Ingested(Path(settings.paths.raw), rows)


@pytest.fixture(scope="module")
def ingested(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ingested:
    return ingest_below(tmp_path_factory.mktemp("live"), spark, write_simulated_and_cases)


@pytest.fixture(scope="module")
def recorded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ingested:
    return ingest_below(tmp_path_factory.mktemp("recorded"), spark, write_recording)


@pytest.fixture(
    params=["simulated", source_cases.CLUSTER, pytest.param("recorded", marks=pytest.mark.long)],
)
def case(request: pytest.FixtureRequest) -> tuple[Ingested, str]:
    """A cluster, and what was ingested of it."""
    return request.getfixturevalue("recorded" if request.param == "recorded" else "ingested"), request.param


def records(raw: Path, cluster: str) -> list[RawRecord]:
    lines = []
    for path in sorted((raw / f"cluster={cluster}").rglob("*.jsonl.gz")):
        lines += read_records(path)
    return sorted(lines, key=lambda record: record.observed_at_ms)


def other_faults(faults: list[ReplyFault]) -> list[ReplyFault]:
    """Return the faults but those of replies that lack a subtask, which Spark leaves out without a word."""
    return [fault for fault in faults if fault.rule is not Rule.MISSING_SUBTASKS]


def live_rows(history: PollHistory, now_s: float) -> dict[Key, Row]:
    """Every window of every operator that was seen in it, as rows like silver's."""
    result, jobs = history.windows(now_s), history.jobs()
    rows: dict[Key, Row] = {}
    for number, job in enumerate(jobs):
        observed = result.observations(number)
        samples = result.of_job(result.samples, number)
        bounds = result.lower_bounds(number)
        measures = {name: result.of_job(values, number) for name, values in result.measures.items()}
        sources = set(job.graph.sources) if job.graph else set()
        for window, start_s in enumerate(observed.window_start_s.tolist()):
            for place, (operator, vertex_id) in enumerate(job.vertex_ids.items()):
                if not samples[window, place]:
                    continue
                rows[job.cluster, job.job, operator, start_s] = {
                    "job_id": job.job_id,
                    "vertex_id": vertex_id,
                    "is_source": operator in sources,
                    "parallelism": int(observed.parallelism[window, place]) or None,
                    "samples": int(samples[window, place]),
                    "disturbed": bool(observed.disturbed[window]),
                    "target_is_lower_bound": bool(bounds[window, place]),
                    **{COLUMNS.get(name, name): float(values[window, place]) for name, values in measures.items()},
                }
    return rows


def same(ours: object, theirs: object) -> bool:
    if not isinstance(ours, float):
        return ours == theirs
    other = math.nan if theirs is None else float(theirs)  # type: ignore[arg-type]
    return math.isclose(ours, other, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(ours) and math.isnan(other))


def differences(ours: Row, theirs: Row, names: tuple[str, ...]) -> dict[str, tuple[object, object]]:
    return {name: (ours[name], theirs[name]) for name in names if not same(ours[name], theirs[name])}


def test_all_at_once_is_what_silver_holds(case: tuple[Ingested, str]) -> None:
    ingested, cluster = case
    history = PollHistory(WINDOW_S, polls=400)
    assert other_faults(history.add(records(ingested.raw, cluster))) == []
    ours = live_rows(history, END.timestamp())
    theirs = {key: row for key, row in ingested.rows.items() if key[0] == cluster}
    assert ours.keys() == theirs.keys()
    assert len(ours) > 200
    if cluster != source_cases.CLUSTER:
        assert 0 < sum(bool(row["disturbed"]) for row in ours.values()) < len(ours)
    measures = tuple(name for name in next(iter(ours.values())) if name not in EXACT)
    result = {key: differences(ours[key], theirs[key], (*EXACT, *measures)) for key in ours}
    wrong = {key: one for key, one in result.items() if one}
    assert not wrong, f"{len(wrong)} of {len(ours)} differ, such as {next(iter(wrong.items()))}"


def test_outstanding_records_and_their_age_are_those_of_a_controller(case: tuple[Ingested, str]) -> None:
    """Within the first hour, before which nothing was polled."""
    ingested, cluster = case
    polled = records(ingested.raw, cluster)
    until_s = polled[0].observed_at_ms // 3_600_000 * 3600 + 3600
    history = PollHistory(WINDOW_S, polls=400)
    history.add(one for one in polled if one.observed_at_ms < 1000 * until_s)
    result, ages = history.windows(until_s), []
    for number, job in enumerate(history.jobs()):
        observed = result.observations(number)
        for place, operator in enumerate(job.vertex_ids):
            for window, start_s in enumerate(observed.window_start_s.tolist()):
                row = ingested.rows.get((cluster, job.job, operator, start_s))
                if row is not None and job.graph and operator in job.graph.sources:
                    told = {"outstanding_records": result.outstanding.records, "age_s": result.outstanding.age_s}
                    ours = {name: float(result.of_job(one, number)[window, place]) for name, one in told.items()}
                    assert not differences(ours, row, tuple(ours)), (job.job, operator, start_s)
                    ages.append(row["age_s"])
    assert len({one for one in ages if one is not None}) > 10


def test_event_time_tells_the_same_ages_and_demand_as_in_a_controller(ingested: Ingested) -> None:
    history, now_s = PollHistory(WINDOW_S, polls=100), END.timestamp()
    assert history.add(records(ingested.raw, EVENT_TIME)) == []
    ours, outstanding = live_rows(history, now_s), history.windows(now_s).outstanding
    theirs = {key: row for key, row in sorted(ingested.rows.items(), key=lambda one: one[0][3]) if key[0] == EVENT_TIME}
    assert {key: differences(row, theirs[key], tuple(row)) for key, row in ours.items()} == {key: {} for key in theirs}
    sources = [row for row in theirs.values() if row["is_source"]]
    for name, values in (("age_s", outstanding.age_s), ("outstanding_records", outstanding.records)):
        assert [row[name] or 0.0 for row in sources] == pytest.approx([*map(float, np.nan_to_num(values[::2]))])
    held_up = [row for row in sources if row["backpressured_share"] > 0.1]  # type: ignore[operator]
    assert max(row["age_s"] for row in held_up) > 60.0  # type: ignore[type-var, operator]
    assert not any(row["target_is_lower_bound"] for row in held_up)


def test_poll_by_poll_with_a_short_memory_gives_the_same_windows(case: tuple[Ingested, str]) -> None:
    ingested, cluster = case
    history, observed = PollHistory(WINDOW_S, polls=15), {}
    every_ms = 1000 * POLLED_EVERY_S[cluster]
    for poll, replies in groupby(records(ingested.raw, cluster), lambda record: record.observed_at_ms // every_ms):
        assert other_faults(history.add(replies)) == []
        for key, row in live_rows(history, (poll + 1) * every_ms / 1000).items():
            reported = differences(row, observed.get(key, row), tuple(name for name in row if name != "disturbed"))
            assert not reported, f"{key}: a window that was given changed: {reported}"
            observed[key] = row
    observed |= live_rows(history, END.timestamp())
    theirs = {key: row for key, row in ingested.rows.items() if key[0] == cluster}
    assert observed.keys() == theirs.keys()
    names = tuple(next(iter(observed.values())))
    result = {key: differences(observed[key], theirs[key], names) for key in observed}
    wrong = {key: one for key, one in result.items() if one}
    assert not wrong, f"{len(wrong)} of {len(observed)} differ, such as {next(iter(wrong.items()))}"


def middle_window(rows: dict[Key, Row], job: str, operator: str | None = None) -> Row:
    """Return a window of a case between its first and its last."""
    mine = {
        key[3]: row
        for key, row in rows.items()
        if key[1] == job and (row["is_source"] if operator is None else key[2] == operator)
    }
    return mine[sorted(mine)[len(mine) // 2]]


TAKEN = {
    **dict.fromkeys(("task_counts", "operator_counts_in", "operator_counts_out", "task_stands_still"), 1000.0),
    **dict.fromkeys(("two_sources", "batches", "several_backlogs", "one_subtask_missing", "fan_out"), 1000.0),
    **dict.fromkeys(("nothing_counts", "no_counter", "cut_name"), None),
    "filter": 1290.0,
    "idle": 0.0,
    "waits_in_reader": 600.0,
    "waits_without_backlog": 600.0,
}


@pytest.mark.parametrize("job", TAKEN)
def test_a_source_is_read_by_what_it_takes_in(ingested: Ingested, job: str) -> None:
    row, wanted = middle_window(ingested.rows, job), TAKEN[job]
    if wanted is None:
        assert row["observed_processing_rate_per_s"] is None
        assert row["target_data_rate_per_s"] is None
        assert row["true_processing_rate_per_s"] is None
    else:
        assert row["observed_processing_rate_per_s"] == pytest.approx(wanted)


def test_backlog_rate_and_age_are_of_the_same_records(ingested: Ingested) -> None:
    """What leaves the filter is a tenth: 429/s would add records before it to records behind it."""
    row = middle_window(ingested.rows, "filter")
    assert row["target_data_rate_per_s"] == pytest.approx(1590.0)
    assert row["selectivity"] == pytest.approx(0.1)
    assert row["true_processing_rate_per_s"] == pytest.approx(2580.0)
    assert row["latency_ms"] == pytest.approx(1000 * float(row["pending_records"]) / 1290.0)  # type: ignore[arg-type]


def test_several_backlogs_of_a_source_add_up(ingested: Ingested) -> None:
    assert middle_window(ingested.rows, "several_backlogs")["pending_records"] == 510_000.0


def test_a_reply_over_fewer_subtasks_is_no_measurement(ingested: Ingested) -> None:
    mine = [row for key, row in ingested.rows.items() if key[1:3] == ("one_subtask_missing", "Source: orders")]
    assert len(mine) == source_cases.SECONDS // 60 - 1  # none is left of the minute in which all lacked one
    assert [row["observed_processing_rate_per_s"] for row in mine[1:]] == pytest.approx([1000.0] * (len(mine) - 1))


@pytest.mark.parametrize("job", ["waits_in_reader", "waits_without_backlog"])
def test_a_source_that_is_busy_at_any_rate_shows_no_capacity(ingested: Ingested, job: str) -> None:
    row = middle_window(ingested.rows, job)
    assert row["busy_share"] == pytest.approx(1.0)
    assert row["true_processing_rate_per_s"] is None


def test_what_a_source_does_with_a_backlog_replaces_what_busy_time_claims(ingested: Ingested) -> None:
    """Busy for half of its time, by its task, and yet it takes in no more while records wait for minutes."""
    assert middle_window(ingested.rows, "works_off")["true_processing_rate_per_s"] == pytest.approx(1000.0)
    assert middle_window(ingested.rows, "backlog_stays")["true_processing_rate_per_s"] == pytest.approx(8000.0)
    assert middle_window(ingested.rows, "works_off_a_little")["true_processing_rate_per_s"] == pytest.approx(1000.0)
    assert middle_window(ingested.rows, "saturated")["true_processing_rate_per_s"] == pytest.approx(1000.0)
