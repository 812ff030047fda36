"""Which operators of a job are sources to forecast: those of its newest graph that may send more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from include.arrow_rows import arrow_rows
from include.tables import JOB_GRAPHS, JOBS, Table
from spark_jobs.forecast.current_sources import is_current, list_sources

NOON = datetime(2026, 3, 20, 12, tzinfo=UTC)
OF_TABLE = {"cluster": "c", "job": "orders", "job_id": "a", "date": NOON.date(), "hour": 12}


def rows(table: Table, *given: dict[str, Any]) -> pa.Table:
    return arrow_rows(table, [{**OF_TABLE, "observed_at": NOON, **one} for one in given])


def vertex(operator: str, **values: Any) -> dict[str, Any]:
    return {"operator": operator, "upstream": [], "status": "RUNNING", **values}


def sources(graphs: list[dict[str, Any]], jobs: list[dict[str, Any]]) -> dict[tuple[str, str], frozenset[str]]:
    return list_sources(rows(JOB_GRAPHS, *graphs), rows(JOBS, *jobs))


def test_a_source_has_nothing_upstream_and_has_not_finished() -> None:
    graph = [
        vertex("s"),
        vertex("map", upstream=["s"]),
        vertex("over", status="FINISHED"),
        vertex("odd", upstream=None),
    ]
    assert sources([*graph, vertex("odd", upstream=None), vertex("young", status=None)], [{}]) == {
        ("c", "orders"): frozenset({"s", "young"})
    }


def test_the_newest_id_of_a_job_counts_with_all_that_its_hour_saw_of_it() -> None:
    later = NOON + timedelta(minutes=5)
    graph = [vertex("before", job_id="z"), vertex("early"), vertex("late", observed_at=later)]
    assert sources(graph, []) == {("c", "orders"): frozenset({"early", "late"})}


def test_of_two_ids_seen_at_once_the_greater_counts() -> None:
    assert sources([vertex("b", job_id="b"), vertex("a", job_id="a")], []) == {("c", "orders"): frozenset({"b"})}


def test_a_job_that_has_ended_or_is_a_batch_job_has_none_with_a_graph_or_without() -> None:
    ended, batch = {"job": "ended", "ended_at": NOON}, {"job": "batch", "job_type": "BATCH"}
    made = sources([vertex("s", job="ended")], [ended, batch])
    assert made == {("c", "ended"): frozenset(), ("c", "batch"): frozenset()}


def test_a_job_that_ended_and_runs_again_has_its_sources() -> None:
    jobs = [{"observed_at": NOON + timedelta(minutes=5)}, {"ended_at": NOON}]
    assert sources([vertex("s")], jobs) == {("c", "orders"): frozenset({"s"})}


def test_a_job_without_a_graph_keeps_all_its_sources() -> None:
    made = sources([vertex("s")], [{"job": "unseen"}])
    assert is_current(made, "c", "unseen", "anything")
    assert is_current(made, "c", "orders", "s")
    assert not is_current(made, "c", "orders", "map")
