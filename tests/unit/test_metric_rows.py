"""Rows of bronze.metrics in a Python worker of Spark: the same columns as the controller reads from the replies."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from models.live.metric_values import read_replies, select_metrics
from models.observing.metric_table import COLUMNS, SOURCE_METRICS, TASK_METRICS
from models.observing.value_rules import AGGREGATIONS
from spark_jobs.job_history.metric_rows import REPLY_KEY, read_rows

METRICS = pa.list_(pa.struct([("id", pa.string()), *[(how, pa.float64()) for how in AGGREGATIONS]]))
KEYS = [(name, pa.timestamp("us", "UTC") if name == "observed_at" else pa.string()) for name in REPLY_KEY]
SCHEMA = pa.schema([*KEYS, *[(name, pa.float64()) for name in (*COLUMNS, "subtasks")]])
NAMES = sorted(
    {name for name, _ in TASK_METRICS.values()}
    | {f"{prefix}{name}" for prefix in ("Source__a.", "Source__b.", "Map.", "") for name, _ in SOURCE_METRICS.values()}
    | {"Source__" + "c" * 80 + ".numRecordsOut", "numLateRecords", "Source__a.group.numRecordsIn"}
)


def batch(replies: list[list[dict[str, object]] | None]) -> pa.RecordBatch:
    keys = [pa.array(range(len(replies))).cast(kind) for _, kind in KEYS]
    return pa.RecordBatch.from_arrays([*keys, pa.array(replies, METRICS)], names=[*REPLY_KEY, "metrics"])


def test_the_same_replies_give_the_same_columns() -> None:
    rnd = random.Random(8)
    replies = [
        [
            {"id": rnd.choice(NAMES), **{how: rnd.choice([None, 0.0, 80.0, 150.0, 600.0]) for how in AGGREGATIONS}}
            for _ in range(rnd.randrange(30))
        ]
        for _ in range(200)
    ]
    rows = [row for one in read_rows([batch(replies[:50]), batch(replies[50:])], SCHEMA) for row in one.to_pylist()]
    columns, faults = read_replies([select_metrics(one) or [] for one in replies], 1e15)
    assert faults == []
    for name, values in zip((*COLUMNS, "subtasks"), (*columns.values, columns.subtasks), strict=True):
        assert [row[name] for row in rows] == [None if np.isnan(value) else value for value in values.tolist()], name
        assert 0 < np.isnan(values).sum() < len(values), name


def test_rows_without_metrics_have_none() -> None:
    (result,) = read_rows([batch([None, [], [{"id": None, "sum": 3.0}]])], SCHEMA)
    assert result.column("cluster").to_pylist() == ["0", "1", "2"]
    assert all(result.column(name).null_count == 3 for name in COLUMNS)
    (empty,) = read_rows([batch([])], SCHEMA)
    assert empty.num_rows == 0
