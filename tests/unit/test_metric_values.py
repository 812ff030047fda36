"""Rows of metrics checked by the value rules: which can be used as they are, and what is left of the others."""

from __future__ import annotations

import pyarrow as pa
import pytest

from models.observing.value_rules import AGGREGATIONS
from spark_jobs.raw_parsing.metric_values import CheckedRows, check_values, find_usable_rows

MAX_VALUE = 1e15


def rows_of(kind: pa.DataType) -> pa.ListType:
    return pa.list_(pa.struct([("id", pa.string()), *[(name, kind) for name in AGGREGATIONS]]))


NUMBERS, TEXTS = rows_of(pa.float64()), rows_of(pa.string())


def metric(name: str | None = "numRecordsIn", **values: float | None) -> dict[str, object]:
    return {"id": name, **dict.fromkeys(AGGREGATIONS, 1.0), **values}


def test_rows_that_can_be_used():
    rows = {
        "good": ([metric(), metric("busyTimeMsPerSecond", avg=1050.0, sum=9e9)], True),
        "empty": ([], True),
        "null": (None, False),
        "no name": ([metric(None)], False),
        "missing": ([metric(), metric(skew=None)], False),
        "negative": ([metric(min=-1.0), metric()], False),
        "huge": ([metric(sum=2e15)], False),
        "nan": ([metric(max=float("nan"))], False),
        "not measured": ([metric("busyTimeMsPerSecond", avg=float("nan"))], False),
        "null element": ([None], False),
        "too busy": ([metric("busyTimeMsPerSecond", max=1051.0)], False),
        "too busy, with a prefix": ([metric("a.b.idleTimeMsPerSecond", avg=1051.0)], False),
        "good again": ([metric()], True),
    }
    result = find_usable_rows(pa.array([row for row, _ in rows.values()], NUMBERS), MAX_VALUE).to_pylist()
    assert dict(zip(rows, result, strict=True)) == {name: retained for name, (_, retained) in rows.items()}
    assert find_usable_rows(pa.array([], NUMBERS), MAX_VALUE).to_pylist() == []


def number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def check(*rows: list[dict[str, str | None] | None] | None) -> CheckedRows:
    """Check rows of texts, typed here as Spark types them."""
    typed = [
        None
        if row is None
        else [
            {
                key: result if key == "id" else number(result)
                for key, result in (element or dict.fromkeys(("id",))).items()
            }
            for element in row
        ]
        for row in rows
    ]
    places = pa.array([f"job{index} vertex" for index in range(len(rows))], pa.string())
    return check_values(pa.array(typed, NUMBERS), pa.array(rows, TEXTS), places, MAX_VALUE)


def texts(name: str | None = "numRecordsIn", **values: str | None) -> dict[str, str | None]:
    return {"id": name, **dict.fromkeys(AGGREGATIONS, "1"), **values}


def test_values_that_break_a_rule_are_taken_out_and_reported_as_received():
    first = [texts(), texts("x.busyTimeMsPerSecond", min="many", max="1051", sum="-2.50")]
    checked = check(first, [texts(avg="NaN")], [texts()])
    good = metric()
    assert checked.metrics.to_pylist() == [
        [good, metric("x.busyTimeMsPerSecond", min=None, max=None, sum=None)],
        [metric(avg=None)],
        [good],
    ]
    assert checked.value_faults.to_pylist() == [
        [
            {"reason": "wrong_type", "detail": "job0 vertex x.busyTimeMsPerSecond.min", "raw": "many"},
            {"reason": "value_huge", "detail": "job0 vertex x.busyTimeMsPerSecond.max", "raw": "1051"},
            {"reason": "value_negative", "detail": "job0 vertex x.busyTimeMsPerSecond.sum", "raw": "-2.50"},
        ],
        [{"reason": "value_nan", "detail": "job1 vertex numRecordsIn.avg", "raw": "NaN"}],
        None,
    ]
    assert checked.metric_values.to_pylist() == [10, 5, 5]
    assert checked.not_measured.to_pylist() == [0, 0, 0]


def test_what_was_not_given_or_not_measured_is_no_fault():
    busy = texts("busyTimeMsPerSecond", **dict.fromkeys(AGGREGATIONS, "NaN"))
    checked = check([texts(skew=None), busy, busy], None, [], [None])
    nothing = dict.fromkeys(AGGREGATIONS)
    assert checked.metrics.to_pylist() == [
        [metric(skew=None), metric("busyTimeMsPerSecond", **nothing), metric("busyTimeMsPerSecond", **nothing)],
        None,
        [],
        [metric(None, **nothing)],
    ]
    assert checked.value_faults.to_pylist() == [None] * 4
    assert checked.metric_values.to_pylist() == [14, 0, 0, 0]
    assert checked.not_measured.to_pylist() == [2, 0, 0, 0]


@pytest.mark.parametrize("start", [0, 1, 2])
def test_a_slice_is_checked_like_the_whole(start):
    rows = pa.array([[metric(min=-1.0)], [metric()], [metric(max=-1.0), metric()]], NUMBERS)
    given = pa.array([[texts(min="-1")], [texts()], [texts(max="-1"), texts()]], TEXTS)
    places = pa.array(["a", "b", "c"])
    whole = check_values(rows, given, places, MAX_VALUE)
    part = check_values(rows[start:], given[start:], places[start:], MAX_VALUE)
    for name in ("metrics", "value_faults", "metric_values", "not_measured"):
        assert getattr(part, name).to_pylist() == getattr(whole, name).to_pylist()[start:]
    assert find_usable_rows(rows[start:], MAX_VALUE).to_pylist() == [False, True, False][start:]
