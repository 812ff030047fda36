"""One definition of a plan's row: what planning writes of a job is what a reader of the table gets."""

from __future__ import annotations

import math
from dataclasses import fields
from datetime import UTC, date, datetime

import pandas as pd
import pyarrow as pa

from include.arrow_rows import arrow_rows
from include.tables import PLANS
from include.tables.plan_row import PLAN_COLUMNS, READ_COLUMNS, PlanRow

ROW = PlanRow(
    cluster="live",
    job="orders",
    step_id="s1",
    status="planned",
    apply_at_s=1_763_661_600,
    valid_until_s=1_763_665_200,
    parallelism_from={"map": 2},
    parallelism_to={"map": 4},
    slots=4,
    expected_recovery_s=120.0,
)


def pack_row(row: PlanRow) -> pa.Table:
    """Return the row as the table has it."""
    return arrow_rows(PLANS, [row.to_columns() | {"date": date(2026, 11, 20)}])


def test_the_table_has_the_columns_of_a_row_and_its_day() -> None:
    assert list(PLANS.columns) == [*PLAN_COLUMNS, "date"]
    assert set(READ_COLUMNS) == set(PLAN_COLUMNS) - {"input_versions", "settings"}
    assert len(PLAN_COLUMNS) == len(fields(PlanRow))


def test_a_row_that_was_written_is_read_again() -> None:
    (row,) = pack_row(ROW).to_pylist()
    assert list(row) == list(PLANS.columns)
    assert PlanRow.of(row) == ROW
    assert PlanRow.of({}) == PlanRow()


def test_pandas_words_for_nothing_are_nothing() -> None:
    row = ROW.to_columns() | {
        "slots_from": math.nan,
        "effective_at": pd.NaT,
        "apply_at": pd.Timestamp("2025-11-20T18:00:00"),
    }
    read = PlanRow.of(row | {"parallelism_to": [("map", 4)]})
    assert (read.slots_from, read.effective_at, read.parallelism_to) == (None, None, {"map": 4})
    assert read.apply_at == datetime(2025, 11, 20, 18, tzinfo=UTC)
