"""Replies with metrics in a Python worker of Spark: the same columns as the controller reads from the replies."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from models.observing.metric_table import COLUMNS, SOURCE_METRICS, TASK_METRICS
from models.observing.value_rules import AGGREGATIONS
from models.polling.metric_values import read_replies, select_metrics
from spark_jobs.raw_parsing.sample_columns import SAMPLE_COLUMNS, read_samples

METRICS = pa.list_(pa.struct([("id", pa.string()), *[(how, pa.float64()) for how in AGGREGATIONS]]))
NAMES = sorted(
    {name for name, _ in TASK_METRICS.values()}
    | {f"{prefix}{name}" for prefix in ("Source__a.", "Source__b.", "Map.", "") for name, _ in SOURCE_METRICS.values()}
    | {"Source__" + "c" * 80 + ".numRecordsOut", "numLateRecords", "Source__a.group.numRecordsIn"}
)


def test_the_same_replies_give_the_same_columns() -> None:
    rnd = random.Random(8)
    replies = [
        [
            {"id": rnd.choice(NAMES), **{how: rnd.choice([None, 0.0, 80.0, 150.0, 600.0]) for how in AGGREGATIONS}}
            for _ in range(rnd.randrange(30))
        ]
        for _ in range(200)
    ]
    rows = read_samples(pa.array(replies, METRICS)).to_pylist()
    nothing = dict.fromkeys(SAMPLE_COLUMNS)
    assert [row is None for row in rows] == [not reply for reply in replies]
    columns, faults = read_replies([select_metrics(one) or [] for one in replies], 1e15)
    assert faults == []
    for name, values in zip((*COLUMNS, "subtasks"), (*columns.values, columns.subtasks), strict=True):
        assert [(row or nothing)[name] for row in rows] == [
            None if np.isnan(value) else value for value in values.tolist()
        ], name
        assert 0 < np.isnan(values).sum() < len(values), name


def test_rows_without_metrics_have_none() -> None:
    rows = read_samples(pa.array([None, [], [{"id": None, "sum": 3.0}]], METRICS)).to_pylist()
    assert rows == [None, None, dict.fromkeys(SAMPLE_COLUMNS)]
    assert len(read_samples(pa.array([], METRICS))) == 0
