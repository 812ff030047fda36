"""Arrow's JSON reader under ingestion: what it reads is right, and what is odd is left to Spark's."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from spark_jobs.raw_parsing.arrow_json import (
    AGGREGATIONS,
    READ_COLUMNS,
    SMALLEST_PART,
    keeps_rules,
    read_arrays,
    read_columns,
    read_objects,
)

KIND = pa.struct([("id", pa.string()), ("n", pa.int64()), ("x", pa.float64())])
LIST = pa.list_(pa.field("element", pa.struct([("id", pa.string()), ("sum", pa.float64())])))
GOOD = '{"id":"a \\"quoted\\" \\u00e9","n":7,"x":1.5,"more":[1,{}]}'
READ = {"id": 'a "quoted" é', "n": 7, "x": 1.5}


def objects(*texts: str | None) -> list[object]:
    return read_objects(pa.array(texts, pa.string()), KIND).to_pylist()


def arrays(*texts: str | None) -> list[object]:
    return read_arrays(pa.array(texts, pa.string()), LIST).to_pylist()


def test_every_text_keeps_its_place():
    assert objects(None, GOOD, "no", "{}", "", GOOD) == [
        None,
        READ,
        None,
        dict.fromkeys(READ),
        None,
        READ,
    ]
    assert objects() == []


@pytest.mark.parametrize(
    "odd",
    [
        '{"id":"a"',
        '{"id":7}',
        '{"n":1.0}',
        '{"n":"1"}',
        '{"n":99999999999999999999}',
        '{"x":"NaN"}',
        '{"x":1e999}',
        "{'id':'a'}",
        '{"id":"a","id":"b"}',
        '{"id":"a"}{"id":"b"}',
        '{"id":"a"} {"id":"b"}',
        '{"id":"a',
        '{"id":"tab\there"}',
        '{"id":"\\ud800"}',
        '{"id":"a"}}',
        " " + GOOD,
        "[]",
        "null",
    ],
)
def test_what_is_odd_is_left_and_costs_no_other(odd):
    good = [GOOD] * SMALLEST_PART
    found = objects(*good, odd, *good, *good)
    assert found[SMALLEST_PART] is None
    assert found[-SMALLEST_PART:] == [READ] * SMALLEST_PART
    assert all(one in (None, READ) for one in found)


def test_lines_do_not_run_into_each_other():
    # Two halves of an object, or a line too many beside one too few, must not pass for as many whole ones.
    assert objects('{"id":"a}', '{b"}') == [None, None]
    assert objects('{"id":"a"}{"id":"b"}', '{"id":"c",}') == [None, None]


def test_invalid_utf8_is_left():
    texts = pa.array([b'{"id":"\xff"}'], pa.binary()).cast(pa.string(), safe=False)
    assert read_objects(texts, KIND).to_pylist() == [None]


def test_arrays():
    good = '[{"id":"a","sum":1},{"sum":-0.5,"id":"b","min":3}]'
    read = [{"id": "a", "sum": 1.0}, {"id": "b", "sum": -0.5}]
    assert arrays(good, "[]", '{"errors":[]}', None, good) == [read, [], None, None, read]
    assert arrays('[{"id":"a","sum":NaN}]', '[{"id":"a","sum":-Infinity}]', '[{"id":"a","sum":"NaN"}]') == [None] * 3
    assert arrays('[{"id":"a"}],"array":[]') == [None]


def test_rules_of_values():
    def metric(name: str | None = "numRecordsIn", **values: float | None) -> dict[str, object]:
        return {"id": name, **dict.fromkeys(AGGREGATIONS, 1.0), **values}

    rows = {
        "good": ([metric(), metric("busyTimeMsPerSecond", avg=1050.0, sum=9e9)], True),
        "empty": ([], True),
        "null": (None, False),
        "no name": ([metric(None)], False),
        "missing": ([metric(), metric(skew=None)], False),
        "negative": ([metric(min=-1.0), metric()], False),
        "huge": ([metric(sum=2e15)], False),
        "nan": ([metric(max=float("nan"))], False),
        "null element": ([None], False),
        "too busy": ([metric("busyTimeMsPerSecond", max=1051.0)], False),
        "too busy, with a prefix": ([metric("a.b.idleTimeMsPerSecond", avg=1051.0)], False),
        "good again": ([metric()], True),
    }
    kind = pa.list_(pa.struct([("id", pa.string()), *[(name, pa.float64()) for name in AGGREGATIONS]]))
    found = keeps_rules(pa.array([row for row, _ in rows.values()], kind), 1e15).to_pylist()
    assert dict(zip(rows, found, strict=True)) == {name: kept for name, (_, kept) in rows.items()}
    assert keeps_rules(pa.array([], kind), 1e15).to_pylist() == []


TYPES = {
    "STRING": pa.string(),
    "BIGINT": pa.int64(),
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
    READ_COLUMNS["event"]: pa.struct([("name", pa.string()), ("vertices", pa.list_(pa.struct([("id", pa.string())])))]),
}


def test_a_body_is_left_out_where_its_metrics_say_all():
    metric = {"id": "numRecordsIn", **dict.fromkeys(AGGREGATIONS, 2.0)}
    replies = {
        "read": ("vertex_metrics", 200, json.dumps([metric])),
        "broken": ("vertex_metrics", 200, json.dumps([{**metric, "sum": -1.0}])),
        "refused": ("vertex_metrics", 404, json.dumps([metric])),
        "event": ("job", 200, json.dumps({"name": "orders", "vertices": []})),
    }
    lines = [json.dumps({"kind": kind, "status": status, "body": body}) for kind, status, body in replies.values()]
    schema = pa.schema([(name, TYPES[kind]) for name, kind in READ_COLUMNS.items()])
    texts, numbers = pa.array([*lines, "no record"]), pa.array(range(1, len(lines) + 2))
    columns = read_columns(texts, numbers, (None, None), schema, max_value=1e15)
    found = pa.Table.from_pydict(columns).to_pylist()
    assert [row["line_number"] for row in found] == [1, 2, 3, 4, 5]
    bodies = [row["envelope"] and row["envelope"]["body"] for row in found]
    assert bodies == [None, *[body for _, _, body in list(replies.values())[1:]], None]
    assert [row["metrics"] for row in found] == [[metric], None, None, None, None]
    assert [row["envelope"] is None for row in found] == [False, False, False, False, True]
    assert [row["line"] is None for row in found] == [True, False, False, True, False]
    # Nor is the text of what is null sent along.
    kept = [line for row in found if (line := row["line"])]
    assert columns["line"].buffers()[2].size == len("".join(kept))
