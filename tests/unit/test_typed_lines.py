"""Lines of raw files as typed columns, by Arrow alone."""

from __future__ import annotations

import json

import pyarrow as pa
from reply_types import reply_type

from models.observing.value_rules import AGGREGATIONS
from spark_jobs.raw_parsing.sample_columns import SAMPLE_COLUMNS
from spark_jobs.raw_parsing.typed_lines import FAULT, READ_COLUMNS, ReplyLimits, read_line_columns

TYPES = {
    "STRING": pa.string(),
    "BIGINT": pa.int64(),
    "BINARY": pa.binary(),
    FAULT: pa.struct([("reason", pa.string()), ("detail", pa.string())]),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    READ_COLUMNS["envelope"]: pa.struct(
        [
            ("observed_at_ms", pa.int64()),
            *[(name, pa.string()) for name in ("cluster", "kind", "job_id", "vertex_id")],
            ("status", pa.int32()),
            ("body", pa.string()),
        ]
    ),
    READ_COLUMNS["metrics"]: pa.list_(
        pa.field("element", pa.struct([("id", pa.string()), *[(name, pa.float64()) for name in AGGREGATIONS]]))
    ),
    READ_COLUMNS["sample"]: pa.struct([(name, pa.float64()) for name in SAMPLE_COLUMNS]),
    READ_COLUMNS["event"]: reply_type(),
}


def test_a_body_is_left_out_where_its_metrics_say_all():
    metric = {"id": "numRecordsIn", **dict.fromkeys(AGGREGATIONS, 2.0)}
    replies = {
        "read": ("vertex_metrics", 200, json.dumps([metric])),
        "broken": ("vertex_metrics", 200, json.dumps([{**metric, "sum": -1.0}])),
        "refused": ("vertex_metrics", 404, json.dumps([metric])),
        "event": ("job", 200, json.dumps({"name": "orders", "state": "RUNNING", "vertices": []})),
    }
    lines = [json.dumps({"kind": kind, "status": status, "body": body}) for kind, status, body in replies.values()]
    schema = pa.schema([(name, TYPES[kind]) for name, kind in READ_COLUMNS.items()])
    texts, numbers = pa.array([*lines, "no record"]), pa.array(range(1, len(lines) + 2))
    columns = read_line_columns(texts, {"line_number": numbers}, (None, None), schema, ReplyLimits(1e15, 0))
    result = pa.Table.from_pydict(columns).to_pylist()
    assert [row["line_number"] for row in result] == [1, 2, 3, 4, 5]
    bodies = [row["envelope"] and row["envelope"]["body"] for row in result]
    assert bodies == [None, *[body for _, _, body in list(replies.values())[1:]], None]
    assert [row["metrics"] for row in result] == [[metric], None, None, None, None]
    assert [row["sample"] and row["sample"]["in_total"] for row in result] == [2.0, None, None, None, None]
    assert [row["envelope"] is None for row in result] == [False, False, False, False, True]
    assert [row["line"] is None for row in result] == [True, False, False, True, False]
    assert [row["line_fault"] and row["line_fault"]["reason"] for row in result] == [*[None] * 4, "malformed_json"]
    # Nor is the text of what is null sent along.
    retained = [line for row in result if (line := row["line"])]
    assert columns["line"].buffers()[2].size == len("".join(retained))
