"""Ingestion in processor seconds, beside the same tables made without Spark and beside a bare Spark job."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measurement import Measurement
from benchmarks.pipeline.hourly import CLUSTER, END, HOUR, MASTER, environment, submit
from benchmarks.processes import Usage, measure
from include.lake_table import LakeTable
from include.settings import load_settings
from include.spark.submission import prepare_submission
from include.stage_names import Stage
from include.tables import BRONZE_JOB_EVENTS, BRONZE_METRICS, OBSERVATIONS, Table
from lab.commands.history import HistoryRequest, write_history
from spark_jobs.raw_parsing.typed_lines import read_schema
from spark_jobs.session import start_session

ROUNDS = 2  # alternating, so that a slow moment of the machine meets all; the least counts
FLEETS = (100, 1_000)
WINDOW_S = 60
NOT_MADE = "disturbed"
MOST_UNREAD = 0.001  # replies with a value that breaks a rule: left to Spark's reader
COMPARED = (BRONZE_METRICS, BRONZE_JOB_EVENTS, OBSERVATIONS)


class DifferentRowsError(RuntimeError):
    """Ingestion and the reference did not make the same rows: their times cannot be compared."""


@dataclass(frozen=True, slots=True)
class Usages:
    """What each took, a round each."""

    stage: list[Usage]
    reference: list[Usage]
    bare: list[Usage]


def run(work: Path, fleets: Sequence[int] = FLEETS, operators: int = 8) -> list[Measurement]:
    """Measure all over one hour of fleets polled once a minute.

    Args:
        work: an empty directory; everything is written below it.
        fleets: how many jobs they have.
        operators: of each job.

    Raises:
        DifferentRowsError: the rows of the tables that both make differ.
    """
    return [one for jobs in fleets for one in measure_fleet(work / str(jobs), jobs, operators)]


def measure_fleet(work: Path, jobs: int, operators: int) -> list[Measurement]:
    """Measure one fleet."""
    work.mkdir()
    raw, schema, usages = work / "raw", work / "schema.arrow", Usages([], [], [])
    with environment(work):
        history = HistoryRequest(1, END, raw, CLUSTER, scale_jobs=jobs, operators=operators, window_s=WINDOW_S)
        write_history(history)
        write_schema(schema)
        for number in range(ROUNDS):
            usages.bare.append(run_bare(work, number))
            usages.reference.append(run_reference(work, schema, number))
            usages.stage.append(submit(Stage.INGEST, work, END, (END - HOUR, END)))
        counts = json.loads((work / "out" / "stages" / "ingest.json").read_text())
        compare_rows(work / "lake", work / "reference-0")
    millions = counts["metric_values"] / 1e6
    name = f"ingest of an hour, {jobs:,} jobs, {counts['rows']:,} rows with {millions:.1f} million metric values"
    cpu_s = {key: min(one.cpu_s for one in getattr(usages, key)) / millions for key in ("stage", "reference", "bare")}
    unit = "CPU s per million values"
    peak = max(one.peak_bytes for one in usages.stage)
    return [
        Measurement(f"{name}; reference: without Spark", cpu_s["stage"], unit, cpu_s["reference"],
                    cpu_s["reference"] / cpu_s["stage"]),
        Measurement(f"{name}; reference: a bare Spark job", cpu_s["stage"], unit, cpu_s["bare"],
                    cpu_s["bare"] / cpu_s["stage"]),
        Measurement(f"{name}, by the clock", min(one.seconds for one in usages.stage), "s"),
        Measurement(f"{name}, peak memory", peak / 2**30, "GiB"),
    ]  # fmt: skip


def write_schema(file: Path) -> None:
    """Write how the reader's columns are called and typed, which takes a session."""
    spark = start_session(load_settings(), "benchmark")
    file.write_bytes(read_schema().serialize().to_pybytes())
    spark.stop()


def run_bare(work: Path, number: int) -> Usage:
    """Run the bare job as a process of its own, with the stage's configuration."""
    submission = prepare_submission(load_settings(), MASTER)
    command = submission.command([str(work / "raw"), str(work / f"bare-{number}")])
    command[command.index(submission.application)] = str(Path(__file__).with_name("bare_ingest.py"))
    return measure(command, submission.environment, work / "logs" / f"bare-{number}.log")


def run_reference(work: Path, schema: Path, number: int) -> Usage:
    """Run the reference as a process of its own."""
    arguments = [str(work / "raw"), str(work / f"reference-{number}"), str(schema), str(WINDOW_S)]
    command = [sys.executable, "-m", "benchmarks.pipeline.reference_ingest", *arguments]
    return measure(command, {}, work / "logs" / f"reference-{number}.log")


def compare_rows(lake: Path, reference: Path) -> None:
    """Compare the tables that both make, but for the few vertices with a reply that the reference does not read.

    Raises:
        DifferentRowsError: they differ.
    """
    replies = read_sorted(reference, BRONZE_METRICS)
    unread = replies.filter(pc.is_null(replies["metrics"]))
    if len(unread) > MOST_UNREAD * len(replies):
        raise DifferentRowsError(f"the reference does not read {len(unread):,} of {len(replies):,} replies")
    for table in COMPARED:
        ours, theirs = (select_read(read_sorted(root, table), unread) for root in (lake, reference))
        different = [name for name in table.columns if name != NOT_MADE and ours[name] != theirs[name]]
        if len(ours) != len(theirs) or different:
            raise DifferentRowsError(
                f"{table.name}: {len(ours):,} rows, without Spark {len(theirs):,}; different: {', '.join(different)}"
            )


def read_sorted(lake: Path, table: Table) -> pa.Table:
    """Return all rows in the order of their keys."""
    rows = LakeTable(str(lake), table).read(list(table.columns), date.min, date.max)
    return rows.sort_by([(key, "ascending") for key in table.keys]).combine_chunks()


def select_read(rows: pa.Table, unread: pa.Table) -> pa.Table:
    """Return rows without those of vertices that have an unread reply; rows about whole jobs all stay."""
    if "vertex_id" not in rows.column_names:
        return rows
    keys = [pc.binary_join_element_wise(one["job_id"], one["vertex_id"], " ") for one in (rows, unread)]
    return rows.filter(pc.invert(pc.is_in(keys[0], keys[1].combine_chunks())))
