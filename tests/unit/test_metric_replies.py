"""The metrics of a reply as the controller takes them: what the rules leave, and a source's operators added up."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest

from include.domain.quarantine_rules import Rule
from models.observing.metric_columns import USED_AGGREGATIONS
from models.observing.metric_table import COLUMNS, PLACE, TASK_METRICS
from models.observing.value_rules import AGGREGATIONS
from models.polling.metric_values import read_replies, select_metrics
from spark_jobs.raw_parsing.metric_values import check_values

MAX_VALUE = 1e15
Metrics = dict[str, object]


def taken(*metrics: Metrics) -> tuple[dict[str, float], list[Rule]]:
    """What is known after one reply, and the rules that its values break."""
    reply = select_metrics(list(metrics))
    assert reply is not None
    columns, faults = read_replies([reply], MAX_VALUE)
    known = {
        name: float(columns.values[PLACE[name], 0])
        for name in COLUMNS
        if not math.isnan(columns.values[PLACE[name], 0])
    }
    return known, [fault.rule for _, fault in faults]


def summed(name: str, value: object) -> Metrics:
    return {"id": name, "sum": value}


def test_backlogs_of_all_operators_add_up_whatever_stands_before_their_names() -> None:
    backlogs = (
        summed("pendingRecords", 1.0),
        summed("Source__a.pendingRecords", 20),
        summed("b.c.pendingRecords", "300"),
    )
    assert taken(*backlogs, summed("xpendingRecords", 4000.0)) == ({"pending": 321.0}, [])
    assert taken(summed("pendingRecords", 1.0), summed("pendingRecords", 2.0)) == ({"pending": 1.0}, [])


@pytest.mark.parametrize(("value", "rule"), [(-5.0, [Rule.VALUE_NEGATIVE]), ("x", [Rule.WRONG_TYPE]), (None, [])])
def test_a_sum_of_which_a_part_is_not_known_is_not_known(value: object, rule: list[Rule]) -> None:
    parts = summed("Source__a.numRecordsIn", 10.0), summed("Source__b.numRecordsIn", value)
    assert taken(*parts, summed("numRecordsIn", 3)) == ({"in_total": 3.0}, rule)


def test_operators_that_cannot_be_told_apart_are_not_added_up() -> None:
    cut = summed("Source__" + "a" * 80 + ".numRecordsOut", 10.0)
    assert taken(cut) == ({}, [])
    assert taken(*[summed("Source__a.numRecordsOut", 10.0)] * 2) == ({}, [])
    assert taken(summed("Source__a.numRecordsOut", 10.0)) == ({"source_out_total": 10.0}, [])


def test_counters_tell_over_how_many_subtasks_they_were_added_up() -> None:
    def told(*metrics: Metrics) -> float:
        return float(read_replies([select_metrics(list(metrics)) or []], MAX_VALUE)[0].subtasks[0])

    four = {"id": "numRecordsIn", "sum": 4000.0, "avg": 1000}
    assert told(four, {"id": "numRecordsInPerSecond", "sum": 900.0, "avg": 300.0}) == 4.0
    assert told(four, {"id": "accumulateIdleTimeMs", "sum": 3001.0, "avg": 1000.0}) == 3.0
    assert told(four, {"id": "accumulateIdleTimeMs", "sum": 99.0, "avg": 99.0}) == 4.0
    assert math.isnan(
        told({"id": "numRecordsOut", "sum": 99.0, "avg": 99.0}, {"id": "accumulateBusyTimeMs", "avg": 1e9})
    )


def test_replies_are_read_apart_from_each_other() -> None:
    replies = [
        select_metrics([summed("numRecordsIn", float(n)), summed("Source__a.numRecordsIn", n)]) for n in range(3)
    ]
    columns, faults = read_replies([reply for reply in replies if reply is not None], MAX_VALUE)
    for name in ("in_total", "source_in_total"):
        assert columns.values[PLACE[name]].tolist() == [0.0, 1.0, 2.0]
    assert np.isnan(columns.values[PLACE["pending"]]).all()
    assert faults == []
    assert select_metrics([]) is None


def test_the_same_values_are_left_as_in_bronze() -> None:
    rnd = random.Random(4)
    samples: list[object] = [0.0, 1.0, 1050.0, 1051.0, 1e15, 2e15, -1.0, "NaN", "12", "1e999", "many", None]
    names = sorted({name for name, _ in TASK_METRICS.values()})
    texts = [{"id": name, **{how: rnd.choice(samples) for how in AGGREGATIONS}} for name in names for _ in range(20)]
    for one in texts:
        known, rules = taken(one)
        typed = {how: number(one[how]) for how in AGGREGATIONS}
        as_text = {how: None if one[how] is None else str(one[how]) for how in AGGREGATIONS}
        kinds = [pa.list_(pa.struct([("id", pa.string()), *[(how, kind) for how in AGGREGATIONS]]))
                 for kind in (pa.float64(), pa.string())]  # fmt: skip
        rows = [pa.array([[{"id": one["id"], **row}]], kind) for row, kind in zip((typed, as_text), kinds, strict=True)]
        checked = check_values(*rows, pa.array(["place"]), MAX_VALUE)
        (metric,) = checked.metrics.to_pylist()[0]
        read = {column: how for column, (name, how) in TASK_METRICS.items() if name == one["id"]}
        assert known == {column: metric[how] for column, how in read.items() if metric[how] is not None}
        broken = {
            fault["detail"].rpartition(".")[2]: fault["reason"] for fault in checked.value_faults.to_pylist()[0] or []
        }
        assert sorted(rules) == sorted(broken[how] for how in USED_AGGREGATIONS if how in broken)


def number(value: object) -> float | None:
    try:
        return None if value is None else float(value)  # type: ignore[arg-type]
    except ValueError:
        return None
