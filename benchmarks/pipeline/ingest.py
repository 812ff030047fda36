"""Ingestion (raw files to bronze, quarantine, quality and silver) against a bare Spark job over the same files."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.measurement import Measurement
from benchmarks.pipeline.hourly import CLUSTER, END, HOUR, MASTER, environment, submit
from benchmarks.processes import Usage, measure
from cli.history import HistoryRequest, write_history
from include.settings import load_settings
from include.spark.submission import prepare_submission
from include.stages import Stage

ROUNDS = 2  # alternating, so that a slow moment of the machine meets both


def bare(work: Path, number: int) -> Usage:
    """Run the bare job as a process of its own, with the same configuration."""
    submission = prepare_submission(load_settings(), MASTER)
    command = submission.command([str(work / "raw"), str(work / f"bare-{number}")])
    command[command.index(submission.application)] = str(Path(__file__).with_name("bare_ingest.py"))
    return measure(command, submission.environment, work / "logs" / f"bare-{number}.log")


def run(work: Path, jobs: int = 1_000, operators: int = 8) -> list[Measurement]:
    """Measure both over one hour of a fleet polled once a minute, some 17 million metric values.

    Args:
        work: an empty directory; everything is written below it.
        jobs: size of the fleet.
        operators: of each job.
    """
    with environment(work):
        write_history(HistoryRequest(1, END, work / "raw", CLUSTER, scale_jobs=jobs, operators=operators, window_s=60))
        ours, theirs = [], []
        for number in range(ROUNDS):
            theirs.append(bare(work, number).seconds)
            ours.append(submit(Stage.INGEST, work, END, (END - HOUR, END)).seconds)
        counts = json.loads((work / "out" / "stages" / "ingest.json").read_text())
    rows, values = counts["rows"], counts["metric_values"]
    rate, reference = rows / min(ours), rows / min(theirs)
    name = f"ingest, {rows:,} rows with {values:,} metric values"
    return [Measurement(name, rate, "rows/s", reference, rate / reference)]
