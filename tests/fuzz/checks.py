"""What has to hold of the tables after mutated input was ingested; a violation is a sentence."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.flink.raw_format import Endpoint
from include.tables import (
    BRONZE_JOB_EVENTS,
    BRONZE_METRICS,
    FILES,
    INGESTED,
    OBSERVATIONS,
    QUALITY,
    QUARANTINE,
    Table,
)
from spark_jobs.lake import Lake
from tests.fuzz.fleet import PARALLELISM, POLL_S
from tests.fuzz.world import END, SOUND, START, World
from tests.spark.raw_builders import SINK, SOURCE, WORK

Key = tuple[str, int]  # file and line number
_RATES = {SOURCE: 100.0, WORK: 100.0, SINK: 50.0}


def find_violations(world: World, lake: Lake) -> Iterator[str]:
    """Yield everything that does not hold."""
    yield from _unaccounted_lines(world, lake)
    yield from _lost_rows(world, lake)
    yield from _changed_windows(world, lake)
    yield from _repeated_keys(lake)
    yield from _unreadable_texts(lake)


def _unaccounted_lines(world: World, lake: Lake) -> Iterator[str]:
    """Lines = kept + duplicate + quarantined, of each file and in sum, and as many lines as were written."""
    files = {row["source_file"]: row for row in lake.read(FILES).collect()}
    for name, row in files.items():
        if row["lines"] != row["kept"] + row["duplicate"] + row["quarantined"]:
            yield f"{name}: {row['lines']} lines, {row['kept']} + {row['duplicate']} + {row['quarantined']}"
    for name, lines in world.lines.items():
        if name not in files or files[name]["lines"] != len(lines):
            yield f"{name}: {len(lines)} lines were written, {files.get(name)}"
    for name in world.damaged.keys() - files.keys():
        yield f"{name}: not in ops.files"
    quality = lake.read(QUALITY).collect()
    for row in quality:
        if row["rows"] != row["kept"] + row["duplicate"] + row["quarantined"]:
            yield f"quality of {row['cluster']}: {row}"
    if sum(row["rows"] for row in quality) != sum(row["lines"] for row in files.values()):
        yield "ops.quality has other lines than ops.files"
    refused = _refused_lines(lake)
    for name, row in files.items():
        if row["quarantined"] > len(refused[name]):
            yield f"{name}: {row['quarantined']} lines are quarantined, {len(refused[name])} are in ops.quarantine"


def _refused_lines(lake: Lake) -> dict[str, set[int]]:
    rows = lake.read(QUARANTINE).where("line_number IS NOT NULL").select("source_file", "line_number").collect()
    result: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        result[row["source_file"]].add(row["line_number"])
    return result


def _lost_rows(world: World, lake: Lake) -> Iterator[str]:
    """Every line that was not changed stands in bronze as it was written, once."""
    metrics = Counter(
        (row["source_file"], row["cluster"], row["job_id"], row["vertex_id"], _ms(row["observed_at"]), _entries(row))
        for row in lake.read(BRONZE_METRICS).collect()
    )
    events = Counter(
        (row["source_file"], row["cluster"], row["kind"], row["job_id"], _ms(row["observed_at"]), row["body"])
        for row in lake.read(BRONZE_JOB_EVENTS).collect()
    )
    for name, lines in world.lines.items():
        for number, line in enumerate(lines, 1):
            if line.mutation:
                continue
            envelope = json.loads(line.content)
            place = (name, envelope["cluster"])
            at, job_id = envelope["observed_at_ms"], envelope["job_id"]
            if envelope["kind"] == Endpoint.VERTEX_METRICS:
                entries = tuple(tuple(one.values()) for one in json.loads(envelope["body"]))
                times = metrics[*place, job_id, envelope["vertex_id"], at, entries]
            else:
                times = events[*place, envelope["kind"], job_id, at, envelope["body"]]
            if times != 1:
                yield f"{name}, line {number}, is in bronze {times} times: {line.content[:200]!r}"


def _entries(row: Any) -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(entry) for entry in row["metrics"] or ())


def _ms(at: datetime) -> int:
    return round(at.replace(tzinfo=UTC).timestamp() * 1000)


def _changed_windows(world: World, lake: Lake) -> Iterator[str]:
    """The windows of jobs of which no line was changed are what they are without the others."""
    rows = lake.read(OBSERVATIONS).where(F.col("cluster") == SOUND).collect()
    jobs = [job for job in world.jobs if job.cluster == SOUND]
    windows = int((END - START).total_seconds()) // POLL_S
    if len(rows) != len(jobs) * len(PARALLELISM) * windows:
        yield f"{len(rows)} windows of sound jobs"
    for row in rows:
        observed = (row["parallelism"], row["observed_processing_rate_per_s"], row["busy_share"], row["disturbed"])
        is_first = row["window_start"].replace(tzinfo=UTC) == START  # before the first poll nothing was counted
        if observed != (PARALLELISM[row["operator"]], None if is_first else _RATES[row["operator"]], 0.5, False):
            yield f"{row['job']}, {row['operator']}, {row['window_start']}: {observed}"


def _repeated_keys(lake: Lake) -> Iterator[str]:
    for table in INGESTED:
        repeated = lake.read(table).groupBy(*table.keys).count().where("count > 1").limit(3).collect()
        yield from (f"{table.name}: {row}" for row in repeated)


def _unreadable_texts(lake: Lake) -> Iterator[str]:
    """Every text of ops.quarantine is UTF-8: Arrow reads the table."""
    table = lake.read(QUARANTINE).toArrow()
    for name in ("raw", "detail", "source_file"):
        try:
            table.column(name).combine_chunks().validate(full=True)
        except ValueError as error:
            yield f"ops.quarantine.{name}: {error}"


def fingerprint(lake: Lake) -> dict[str, tuple[int, str]]:
    """Return rows and content of every table, whatever their order."""
    return {table.name: _content(table, lake.read(table)) for table in INGESTED}


def _content(table: Table, rows: DataFrame) -> tuple[int, str]:
    total = F.sum(F.xxhash64(F.to_json(F.struct(*table.columns))).cast("DECIMAL(38,0)"))
    row = rows.agg(F.count(F.lit(1)).alias("rows"), total.cast("STRING").alias("sum")).first()
    return (row["rows"], str(row["sum"])) if row else (0, "")


def outcomes(world: World, lake: Lake) -> dict[str, Counter[str]]:
    """Return mutation -> what became of its lines: ``kept`` or the rule that they break (the values' rules apart)."""
    rows = (
        lake.read(QUARANTINE).where("line_number IS NOT NULL").select("source_file", "line_number", "reason").collect()
    )
    reasons: dict[Key, str] = {(row["source_file"], row["line_number"]): row["reason"] for row in rows}
    result: dict[str, Counter[str]] = defaultdict(Counter)
    for name, lines in world.lines.items():
        for number, line in enumerate(lines, 1):
            if line.mutation:
                result[line.mutation][reasons.get((name, number), "kept")] += 1
    retained = {row["source_file"]: row for row in lake.read(FILES).collect()}
    for name, packing in world.damaged.items():
        row = retained.get(name)
        if row is not None:
            result[packing].update({"kept": row["kept"], "refused": row["quarantined"] + row["duplicate"]})
    return result
