"""The whole parser: lines of raw files to typed rows, each with its faults."""

from __future__ import annotations

from pyspark.sql import DataFrame

from include.settings import Ingest
from spark_jobs.raw_parsing.arrow_json import read_raw
from spark_jobs.raw_parsing.bodies import parse_bodies
from spark_jobs.raw_parsing.envelopes import parse_envelope


def parse_lines(contents: DataFrame, rules: Ingest) -> DataFrame:
    """Parse the lines of files once, and keep them."""
    # A checkpoint rather than a cache: the long plan of the parser is then not planned again by every later query.
    return parse_bodies(parse_envelope(read_raw(contents, rules), rules), rules).localCheckpoint()
