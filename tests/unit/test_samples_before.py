"""What is read of the hour before: the windows of the hours after it are those that all of it gives."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from include.settings import Cluster
from models.observing.metric_table import COLUMNS
from models.observing.samples import Polls, Vertices, build_samples
from models.observing.windows import build_windows
from spark_jobs.ingest.samples_before import select_last
from spark_jobs.raw_parsing.sample_columns import SAMPLE_COLUMNS

END = datetime(2026, 11, 20, 17, tzinfo=UTC)
END_S = int(END.timestamp())
RAN = 2
"""How many subtasks ran; rows of fewer are left out of windows."""
CLUSTERS = {"c": Cluster(window_s=60)}
SAMPLE = pa.struct([(name, pa.float64()) for name in SAMPLE_COLUMNS])
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("cluster", "job_id", "vertex_id")),
        ("observed_at", pa.timestamp("us", "UTC")),
        ("sample", SAMPLE),
    ]
)


@st.composite
def polls(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Polls of a vertex from half an hour before to some minutes after: some still, partial or without metrics."""
    at = sorted(draw(st.sets(st.integers(-1_800, 400), min_size=1, max_size=14)))
    at += sorted(draw(st.sets(st.integers(-200, 150), max_size=8)) - set(at))
    busy_ms, rows = 0.0, []
    for second in sorted(at):
        busy_ms += draw(st.sampled_from([0.0, 1_000.0, 25_000.0]))
        subtasks = draw(st.sampled_from([1.0, float(RAN), float(RAN), None]))
        sample = {
            "in_total": 3.0 * busy_ms,
            "busy_total_ms": busy_ms,
            "idle_total_ms": 0.0,
            "backpressured_total_ms": 0.0,
            "pending": float(draw(st.integers(0, 3))),
            "subtasks": subtasks,
        }
        rows.append({"second": second, "sample": draw(st.sampled_from([sample, sample, sample, None]))})
    return rows


def make_rows(of_vertices: list[list[dict[str, Any]]]) -> pa.Table:
    rows = [
        {"cluster": "c", "job_id": "j", "vertex_id": str(vertex), "observed_at": 1_000_000 * (END_S + row["second"])}
        | {"sample": row["sample"]}
        for vertex, of_vertex in enumerate(of_vertices)
        for row in of_vertex
    ]
    columns = [pa.array([row[name] for row in rows]).cast(SCHEMA.field(name).type) for name in SCHEMA.names[:-1]]
    return pa.table([*columns, pa.array([row["sample"] for row in rows], SAMPLE)], schema=SCHEMA)


def windows_after(rows: pa.Table) -> list[tuple[object, ...]]:
    """The windows from the end of the hour on, of what is not left out."""
    given_rows = [
        row
        for row in rows.sort_by([("vertex_id", "ascending"), ("observed_at", "ascending")]).to_pylist()
        if row["sample"] is not None and not (row["sample"]["subtasks"] or RAN) < RAN
    ]
    names = sorted({row["vertex_id"] for row in given_rows})
    values = [
        [np.nan if row["sample"][name] is None else row["sample"][name] for row in given_rows] for name in COLUMNS
    ]
    every = Vertices(np.full(len(names), 60), np.ones(len(names), bool), np.zeros(len(names), bool))
    samples = build_samples(
        Polls(
            np.array([names.index(row["vertex_id"]) for row in given_rows], np.int64),
            np.array([int(row["observed_at"].timestamp()) * 1_000_000 for row in given_rows], np.int64),
            np.array(values, float).reshape(len(COLUMNS), -1),
        ),
        every,
    )
    result = build_windows(samples, every, np.full(len(samples.since_last_s), np.nan))
    wanted = result.of(result.start_s >= END_S)
    measures = [tuple(np.nan_to_num(row, nan=-1.0)) for row in np.array(list(wanted.measures.values())).T]
    return [
        (names[vertex], start, samples, *row)
        for vertex, start, samples, row in zip(wanted.vertex, wanted.start_s, wanted.samples, measures, strict=True)
    ]


@given(st.lists(polls(), min_size=1, max_size=3))
def test_windows_are_those_of_all_rows(of_vertices: list[list[dict[str, Any]]]) -> None:
    rows = make_rows(of_vertices)
    before, after = (
        rows.filter(pa.array([flag == is_before for flag in is_earlier(rows)])) for is_before in (True, False)
    )
    if not len(before):
        return
    chosen = select_last(before, END, CLUSTERS, set())
    assert windows_after(pa.concat_tables([chosen, after])) == windows_after(rows)


def is_earlier(rows: pa.Table) -> list[bool]:
    return [moment < END for moment in rows["observed_at"].to_pylist()]


def minutes(first: int, last: int, **sample: float) -> list[dict[str, Any]]:
    return [{"second": 60 * k, "sample": {"busy_total_ms": 100.0 * k, **sample}} for k in range(first, last)]


def seconds_of(rows: pa.Table) -> list[int]:
    return [int(moment.timestamp()) - END_S for moment in rows["observed_at"].to_pylist()]


def test_four_windows_and_one_row_before_them_are_read() -> None:
    rows = make_rows([minutes(-60, 0)])
    assert seconds_of(select_last(rows, END, CLUSTERS, set())) == [-300, -240, -180, -120, -60]


def test_of_a_job_that_stopped_all_is_read() -> None:
    rows = make_rows([minutes(-60, 0)])
    assert select_last(rows, END, CLUSTERS, {"j"}) == rows
    assert len(select_last(rows, END, CLUSTERS, {"other"})) == 5


def test_the_length_of_windows_is_that_of_the_cluster() -> None:
    rows = make_rows([minutes(-60, 0)])
    longer = select_last(rows, END, {"c": Cluster(window_s=300)}, set())
    assert seconds_of(longer) == [-1260, *range(-1200, 0, 60)]
    assert seconds_of(select_last(rows, END, {}, set())) == [
        second for second in range(-3600, 0, 60) if second >= -4 * Cluster().window_s - 60
    ]


def test_a_row_of_fewer_subtasks_does_not_stand_for_the_one_before() -> None:
    """Such a row is left out of windows: the newest that stays is needed as well."""
    rows = make_rows([[*minutes(-10, -6, subtasks=2.0), *minutes(-6, -5, subtasks=1.0), *minutes(-2, 0, subtasks=2.0)]])
    assert seconds_of(select_last(rows, END, CLUSTERS, set())) == [-420, -360, -120, -60]
