"""Replies about jobs of the hours before, from bronze.job_events, with what is read of their bodies.

Arrow reads them, as it does when they come, and Spark's reader what Arrow refuses: that one took 31 s of processor time
for an hour of 1,000 jobs, which it read twice; this takes 8 s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from include.flink.raw_format import Endpoint
from include.tables import BRONZE_JOB_EVENTS
from spark_jobs.ingest.hours import read_hours
from spark_jobs.job_history.arrow_maps import map_batches
from spark_jobs.lake import Lake, keep
from spark_jobs.raw_parsing.arrow_json import read_objects, select_texts
from spark_jobs.raw_parsing.reply_schema import REPLY

_COLUMNS = {**BRONZE_JOB_EVENTS.columns, "event": REPLY}
_READ = pa.array([str(kind) for kind in (Endpoint.JOB, Endpoint.PLAN, Endpoint.CHECKPOINTS, Endpoint.EXCEPTIONS)])
"""Kinds of which ``REPLY`` has all that is used."""


def read_earlier_replies(lake: Lake, start: datetime, end: datetime) -> DataFrame:
    """Return rows of bronze.job_events of the hours ``[start, end)`` with ``event``, worked out once, when it is used.

    ``event`` is null where the body is still to be read, and ``body`` where it is not.
    """
    stored = read_hours(lake, BRONZE_JOB_EVENTS, start, end).select(*BRONZE_JOB_EVENTS.columns)
    return keep(map_batches(stored, read_bodies, _COLUMNS))


def read_bodies(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Return rows of bronze.job_events with ``event``, as those of :func:`read_earlier_replies`."""
    for batch in batches:
        body = batch.column("body")
        event = read_objects(body, schema.field("event").type, pc.is_in(batch.column("kind"), _READ))
        made = {"body": select_texts(pc.is_null(event), body), "event": event}
        columns = [made[name] if name in made else batch.column(name) for name in schema.names]
        arrays = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
