"""Arrow's JSON reader under ingestion: what it reads is right, and what is odd is left to Spark's."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_jobs.raw_parsing.arrow_json import SMALLEST_PART, read_arrays, read_objects

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
    result = objects(*good, odd, *good, *good)
    assert result[SMALLEST_PART] is None
    assert result[-SMALLEST_PART:] == [READ] * SMALLEST_PART
    assert all(one in (None, READ) for one in result)


def test_lines_do_not_run_into_each_other():
    # Two halves of an object, or a line too many beside one too few, must not pass for as many whole ones.
    assert objects('{"id":"a}', '{b"}') == [None, None]
    assert objects('{"id":"a"}{"id":"b"}', '{"id":"c",}') == [None, None]


def test_bad_encoding_is_left():
    texts = pa.array([b'{"id":"\xff"}'], pa.binary()).cast(pa.string(), safe=False)
    assert read_objects(texts, KIND).to_pylist() == [None]


def test_arrays():
    good = '[{"id":"a","sum":1},{"sum":-0.5,"id":"b","min":3}]'
    read = [{"id": "a", "sum": 1.0}, {"id": "b", "sum": -0.5}]
    assert arrays(good, "[]", '{"errors":[]}', None, good) == [read, [], None, None, read]
    assert arrays('[{"id":"a","sum":NaN}]', '[{"id":"a","sum":-Infinity}]', '[{"id":"a","sum":"NaN"}]') == [None] * 3
    assert arrays('[{"id":"a"}],"array":[]') == [None]
