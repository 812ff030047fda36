"""What became of a run's own files: ops.files, and ops.quarantine with what was refused, and why, as received."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.arrow_rows import arrow_rows
from include.raw_files import RawFile
from include.tables import FILES, QUARANTINE
from spark_jobs.ingest.file_counts import count_files, count_marked
from spark_jobs.ingest.hours import hours_where
from spark_jobs.ingest.quality import Counts, count_refusals
from spark_jobs.ingest.raw_input import RawInput
from spark_jobs.ingest.table_writes import TableWrites
from spark_jobs.lake import Lake, date_hour_columns, from_table, keep
from spark_jobs.raw_parsing.numbered_lines import read_lines
from spark_jobs.raw_parsing.raw_contents import read_contents

_FOUND = "STRUCT<reason: STRING, detail: STRING, raw: STRING>"
MOST_SHOWN = 20
"""So many refusals are named in the log and the summary; the table has all."""


@dataclass(frozen=True, slots=True)
class QuarantinedRows:
    """What was refused of a run's own files.

    Attributes:
        counts: columns of ops.quality.
        refusals: what was refused most, one line each.
    """

    counts: Counts
    refusals: list[str]


def write_refused(
    lake: Lake, raw: RawInput, own_marked: DataFrame, writes: TableWrites, *, has_more: bool
) -> QuarantinedRows:
    """Write ops.files and ops.quarantine: each file, line and value that is refused, once.

    Of the marked lines only those of the interval's own directories count: the others are another run's to judge.
    ``has_more`` says that some have a fault which was not known when they were read.
    """
    where = hours_where(raw.interval)
    marked = count_marked(own_marked) if has_more else {name: file.counts for name, file in raw.read_files.items()}
    files = count_files(raw.own_files, raw.read_files, marked)
    writes.start(FILES, arrow_rows(FILES, files), where)
    counts = count_refusals(raw.own_files, files)
    of_files = arrow_rows(QUARANTINE, _quarantine_files(raw.own_files, files))
    own = [marked[file.name] for file in raw.own_files if file.name in marked]
    if not any(one["quarantined"] + one["quarantined_values"] for one in own):
        writes.start(QUARANTINE, of_files, where)
        return QuarantinedRows(counts, _name_refusals(of_files))
    bare = [file for file in raw.own_files if file.name in marked and marked[file.name]["bare"]]
    of_lines = _quarantine_rows(_add_lines(lake, bare, own_marked))
    every = of_lines.unionByName(from_table(lake.spark, QUARANTINE, of_files)).distinct()
    every = keep(every.repartition("date"))  # one file for each day
    writes.start(QUARANTINE, every, where)
    named = every.groupBy("cluster", "source_file", "reason").agg(F.count(F.lit(1)).alias("n"))
    return QuarantinedRows(counts, _list_most({tuple(row)[:3]: row["n"] for row in named.collect()}))


def _quarantine_rows(rows: DataFrame) -> DataFrame:
    """Return one row per line that has a fault, with the line as received, and one per metric value that has a fault.

    Of a line that only has faulty values, the rest stands in bronze.
    """
    of_line = F.array(F.struct("fault.reason", "fault.detail", F.col("line").alias("raw")).cast(_FOUND))
    of_values = F.when(~F.col("duplicate"), F.col("value_faults"))
    result = F.when(F.col("fault").isNotNull(), of_line).otherwise(of_values)
    faulty = rows.where("fault IS NOT NULL OR value_faults IS NOT NULL").withColumn("found", F.explode(result))
    return faulty.select(
        F.col("cluster_dir").alias("cluster"),
        "found.reason",
        "found.detail",
        "found.raw",
        "raw_bytes",
        "line_number",
        "observed_at",
        "source_file",
        *date_hour_columns("dir_hour"),
    ).select(*QUARANTINE.columns)


def _add_lines(lake: Lake, files: list[RawFile], rows: DataFrame) -> DataFrame:
    """Fill in the lines of own rows whose fault was found only by comparing them with others, from their files."""
    if not files:
        return rows
    bare = keep(rows.where("fault IS NOT NULL AND line IS NULL"))
    lines = read_lines(read_contents(lake.spark, files))
    wanted = bare.select("source_file", "line_number")
    result = lines.join(F.broadcast(wanted), ["source_file", "line_number"], "left_semi")
    complete = bare.drop("line").join(result, ["source_file", "line_number"], "left")
    return rows.where("fault IS NULL OR line IS NOT NULL").unionByName(complete.select(*rows.columns))


def _quarantine_files(listed: Iterable[RawFile], files: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per file or folder that could not be read, or not to its end, or is misplaced; each once."""
    refused = [
        {
            "cluster": file.cluster or None,
            "reason": str(file.fault[0]),
            "detail": file.fault[1],
            "source_file": file.name,
            "date": file.hour.date(),
            "hour": file.hour.hour,
        }
        for file in listed
        if file.fault is not None
    ]
    named = ("cluster", "reason", "detail", "source_file", "date", "hour")
    damaged = [file for file in files if file["reason"] is not None and file["detail"] is not None]
    rows = [*refused, *({name: file[name] for name in named} for file in damaged)]
    return [{**dict(row), "raw": dict(row)["source_file"]} for row in dict.fromkeys(tuple(one.items()) for one in rows)]


def _name_refusals(quarantine: pa.Table) -> list[str]:
    columns = (quarantine[name].to_pylist() for name in ("cluster", "source_file", "reason"))
    return _list_most(Counter(zip(*columns, strict=True)))


def _list_most(counted: Mapping[tuple[Any, ...], int]) -> list[str]:
    """Return what was refused most: cluster, file, rule and how often, one line each."""
    first = sorted(counted.items(), key=lambda one: (-one[1], *one[0][1:]))[:MOST_SHOWN]
    return [f"cluster {cluster}, file {file}: {reason} ({n})" for (cluster, file, reason), n in first]
