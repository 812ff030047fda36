"""The whole parser: lines of raw files to typed rows, each with its faults, and a row about each file."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.flink.raw_format import Endpoint
from include.settings import Ingest
from include.tables import AGGREGATES
from models.observing.value_rules import AGGREGATIONS
from spark_jobs.lake import keep
from spark_jobs.raw_parsing.envelopes import parse_envelope
from spark_jobs.raw_parsing.event_bodies import vertex_ids
from spark_jobs.raw_parsing.lenient_metrics import VALUE_FAULTS, is_left, read_left_metrics
from spark_jobs.raw_parsing.raw_contents import RawContents
from spark_jobs.raw_parsing.reply_schema import REPLY
from spark_jobs.raw_parsing.sample_columns import SAMPLE
from spark_jobs.raw_parsing.typed_lines import FAULT, read_files

PARSED_COLUMNS = {
    "cluster_dir": "STRING",
    "dir_hour": "TIMESTAMP",
    "source_file": "STRING",
    "line": "STRING",  # of a good line null: its number finds it again in its file
    "line_number": "BIGINT",  # null in the row about a file
    "raw_bytes": "BINARY",  # of a line that is no UTF-8
    "file_lines": "BIGINT",  # in the row about a file: how many lines it has
    "kind": "STRING",
    "job_id": "STRING",
    "vertex_id": "STRING",
    "observed_at": "TIMESTAMP",
    "fault": FAULT,  # the first rule that the line breaks; null when it breaks none
    "body": "STRING",  # of a reply other than vertex metrics
    "event": REPLY,  # the same, where Arrow could read it
    "vertex_ids": "ARRAY<STRING>",  # that a reply names
    "metrics": AGGREGATES,  # null where a value breaks a rule
    "sample": SAMPLE,  # what of them is measured; null without any
    "value_faults": VALUE_FAULTS,  # null without one
    "metric_values": "INT",  # how many were received
    "not_measured": "INT",  # how many times Flink did not measure
}


def parse_lines(contents: RawContents, rules: Ingest) -> DataFrame:
    """Parse the lines of files once, and keep them; columns ``PARSED_COLUMNS``.

    Metrics that Arrow left are not read yet: :func:`read_left_lines` does that where there are any.
    """
    return keep(_select(parse_envelope(read_files(contents, rules), rules)))


def read_left_lines(parsed: DataFrame, rules: Ingest) -> DataFrame:
    """Return the parsed lines whose metrics Arrow left, with these read, kept."""
    return keep(read_left_metrics(parsed.where(is_left()), rules.max_value))


def replace_left_lines(parsed: DataFrame, read: DataFrame) -> DataFrame:
    """Return all parsed lines, those that Arrow left as :func:`read_left_lines` gives them."""
    return parsed.where(~is_left()).unionByName(read)


def select_lines(parsed: DataFrame) -> DataFrame:
    """Return the rows about lines."""
    return parsed.where("line_number IS NOT NULL")


def _select(read: DataFrame) -> DataFrame:
    """Return rows with ``PARSED_COLUMNS``; those that are left for Spark's reader still have their line and body."""
    is_good = F.col("fault").isNull() & F.col("line_number").isNotNull()
    is_metrics = is_good & (F.col("kind") == Endpoint.VERTEX_METRICS)
    known = {
        "line": F.when(~is_good | is_left(), F.col("line")),
        "body": F.when(is_good & (~is_metrics | is_left()), F.col("body")),
        "event": F.when(is_good & ~is_metrics, F.col("event")),
        "vertex_ids": F.when(is_good & ~is_metrics, vertex_ids("event")),
        "metrics": F.when(is_metrics, F.col("metrics")),
        "sample": F.when(is_metrics, F.col("sample")),
        "value_faults": F.lit(None),
        "metric_values": F.when(is_metrics, F.size("metrics") * len(AGGREGATIONS)),
        "not_measured": F.lit(0),
    }
    return read.select(*[known.get(name, F.col(name)).cast(kind).alias(name) for name, kind in PARSED_COLUMNS.items()])
