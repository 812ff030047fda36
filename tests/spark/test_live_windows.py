"""Live windows beside silver.observations, from the same raw files: a real recording and a simulated history."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, timedelta
from itertools import groupby
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cli.history import HistoryRequest, write_history
from include.flink.raw_format import RawRecord, read_records
from include.settings import SETTINGS_FILE_VARIABLE, Cluster
from include.stages import Stage, StageRequest
from include.tables import OBSERVATIONS
from models.live.poll_history import PollHistory
from spark_jobs.ingest import stage as ingest
from spark_jobs.lake import Lake
from tests.spark.lake_settings import REPOSITORY, settings_below
from tests.spark.raw_builders import utc

pytestmark = pytest.mark.spark
END = utc("2026-11-20T20:00")
HOURS = 3
WINDOW_S = {"recorded": 15, "simulated": 300}
POLLED_EVERY_S = {"recorded": 5, "simulated": 60}
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


@pytest.fixture(scope="module")
def ingested(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ingested]:
    root = tmp_path_factory.mktemp("live")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SETTINGS_FILE_VARIABLE, str(root / "none.toml"))
        clusters = {name: Cluster(window_s=length) for name, length in WINDOW_S.items()}
        settings = settings_below(root).model_copy(update={"clusters": clusters})
        raw = Path(settings.paths.raw)
        shutil.copytree(RECORDING, raw / RECORDING.name)
        write_history(HistoryRequest(HOURS, END, raw, window_s=POLLED_EVERY_S["simulated"]), workers=2)
        start = END - timedelta(hours=HOURS)
        summary = ingest.run(spark, settings, StageRequest(Stage.INGEST, END, start, END))
        assert not summary["quarantined"]
        rows = {}
        for row in Lake(spark, settings.paths.lake).read(OBSERVATIONS).collect():
            began = int(row["window_start"].replace(tzinfo=UTC).timestamp())
            rows[row["cluster"], row["job"], row["operator"], began] = row.asDict()
        yield Ingested(raw, rows)


def records(raw: Path, cluster: str) -> list[RawRecord]:
    lines = []
    for path in sorted((raw / f"cluster={cluster}").rglob("*.jsonl.gz")):
        lines += read_records(path)
    return sorted(lines, key=lambda record: record.observed_at_ms)


def live_rows(history: PollHistory, now_s: float) -> dict[Key, Row]:
    """Every window of every operator that was seen in it, as rows like silver's."""
    found, jobs = history.windows(now_s), history.jobs()
    rows: dict[Key, Row] = {}
    for number, job in enumerate(jobs):
        seen = found.observations(number)
        samples = found.of_job(found.samples, number)
        bounds = found.lower_bounds(number)
        measures = {name: found.of_job(values, number) for name, values in found.measures.items()}
        sources = set(job.graph.sources) if job.graph else set()
        for window, start_s in enumerate(seen.window_start_s.tolist()):
            for place, (operator, vertex_id) in enumerate(job.vertex_ids.items()):
                if not samples[window, place]:
                    continue
                rows[job.cluster, job.job, operator, start_s] = {
                    "job_id": job.job_id,
                    "vertex_id": vertex_id,
                    "is_source": operator in sources,
                    "parallelism": int(seen.parallelism[window, place]) or None,
                    "samples": int(samples[window, place]),
                    "disturbed": bool(seen.disturbed[window]),
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


@pytest.mark.parametrize("cluster", WINDOW_S)
def test_all_at_once_is_what_silver_holds(ingested: Ingested, cluster: str) -> None:
    history = PollHistory(WINDOW_S, polls=400)
    assert history.add(records(ingested.raw, cluster)) == []
    ours = live_rows(history, END.timestamp())
    theirs = {key: row for key, row in ingested.rows.items() if key[0] == cluster}
    assert ours.keys() == theirs.keys()
    assert len(ours) > 200
    assert 0 < sum(bool(row["disturbed"]) for row in ours.values()) < len(ours)
    measures = tuple(name for name in next(iter(ours.values())) if name not in EXACT)
    found = {key: differences(ours[key], theirs[key], (*EXACT, *measures)) for key in ours}
    wrong = {key: one for key, one in found.items() if one}
    assert not wrong, f"{len(wrong)} of {len(ours)} differ, such as {next(iter(wrong.items()))}"


@pytest.mark.parametrize("cluster", WINDOW_S)
def test_poll_by_poll_with_a_short_memory_gives_the_same_windows(ingested: Ingested, cluster: str) -> None:
    history, seen = PollHistory(WINDOW_S, polls=15), {}
    every_ms = 1000 * POLLED_EVERY_S[cluster]
    for poll, replies in groupby(records(ingested.raw, cluster), lambda record: record.observed_at_ms // every_ms):
        assert history.add(replies) == []
        for key, row in live_rows(history, (poll + 1) * every_ms / 1000).items():
            told = differences(row, seen.get(key, row), tuple(name for name in row if name != "disturbed"))
            assert not told, f"{key}: a window that was given changed: {told}"
            seen[key] = row
    seen |= live_rows(history, END.timestamp())
    theirs = {key: row for key, row in ingested.rows.items() if key[0] == cluster}
    assert seen.keys() == theirs.keys()
    names = tuple(next(iter(seen.values())))
    found = {key: differences(seen[key], theirs[key], names) for key in seen}
    wrong = {key: one for key, one in found.items() if one}
    assert not wrong, f"{len(wrong)} of {len(seen)} differ, such as {next(iter(wrong.items()))}"
