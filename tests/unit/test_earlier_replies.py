"""Bodies of bronze.job_events read by Arrow: those that it reads, and no others, are not read by Spark again."""

from __future__ import annotations

import json

import pyarrow as pa
from reply_types import reply_type

from include.arrow_rows import arrow_rows, arrow_schema
from include.flink.raw_format import Endpoint
from include.tables import BRONZE_JOB_EVENTS
from spark_jobs.ingest.earlier_replies import read_bodies

SCHEMA = arrow_schema(BRONZE_JOB_EVENTS).append(pa.field("event", reply_type()))


def read(*bodies: tuple[Endpoint, str | None]) -> pa.RecordBatch:
    rows = [{"cluster": "c", "job_id": "b" * 32, "kind": str(kind), "body": body} for kind, body in bodies]
    (result,) = read_bodies(arrow_rows(BRONZE_JOB_EVENTS, rows).combine_chunks().to_batches(), SCHEMA)
    return result


def test_a_body_is_left_where_its_reading_is_not_complete() -> None:
    job = json.dumps({"name": "orders", "vertices": [{"id": "a" * 32, "metrics": {"read-bytes": 1}}]})
    history, rescale = json.dumps({"history": [{"id": 7, "status": "COMPLETED"}]}), json.dumps({"rescaleUuid": "1"})
    batch = read(
        (Endpoint.JOB, job), (Endpoint.CHECKPOINTS, history), (Endpoint.RESCALE, rescale), (Endpoint.PLAN, None)
    )
    result = batch.to_pylist()
    assert [row["body"] for row in result] == [None, None, rescale, None]  # whose fields are of another schema
    assert [row["event"] is not None for row in result] == [True, True, False, False]
    assert result[0]["event"]["vertices"][0]["id"] == "a" * 32
    assert result[1]["event"]["history"][0]["id"] == 7
    assert [row["cluster"] for row in result] == ["c"] * 4
    # Nor is the text of what is null sent along.
    assert batch.column("body").buffers()[2].size == len(rescale)


def test_a_body_that_arrow_refuses_is_left() -> None:
    odd = json.dumps({"name": ["no", "text"]})
    (row,) = read((Endpoint.JOB, odd)).to_pylist()
    assert row["body"] == odd
    assert row["event"] is None
