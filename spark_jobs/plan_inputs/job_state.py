"""What is known of a job before it is planned, as one row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from include.domain.finished_operators import FINISHED, drop_finished
from include.domain.graph import BY_KEY, GraphError, JobGraph, Operator
from include.domain.operator_matching import PlacedOperator
from include.domain.slots import DEFAULT_GROUP, count_slots
from include.settings import Cluster
from spark_jobs.plan_inputs.struct_arrays import Columns
from spark_jobs.source_inputs.renames import versions_of


@dataclass(frozen=True, slots=True)
class JobState:
    """One row of :func:`spark_jobs.newest_rows.job_states` with the history that its policy asks for.

    Attributes:
        operators: of the newest graph; empty without one.
        versions: the graphs of the last days, of a job whose operators have changed; else empty.
        state, job_type, ended_at_s: see silver.jobs; null in a lake of an earlier release.
        is_busy_measured: whether Flink measured the busy time of any of its operators.
        past_loads: of :func:`spark_jobs.plan_inputs.past_loads.past_loads`; None for a job that needs none.
        unseen_sources: sources that were watched at work while nothing told their load.
        windows: of :func:`spark_jobs.plan_inputs.windows.recent_windows`; None for a policy that does not look at them.
        memory, memory_policy: what a policy left at the last plan, and which.
        bins, forecast_as_of_s, forecast_version: of
            :func:`spark_jobs.newest_rows.newest_forecasts`; None where there is no forecast.
    """

    cluster: str
    job: str
    job_id: str
    operators: list[dict[str, Any]]
    seen_at_s: int | None
    observed_until_s: int | None
    observed_after_s: int | None
    windows: Columns | None
    memory: str | None
    memory_policy: str | None
    bins: Columns | None
    forecast_as_of_s: int | None
    forecast_version: str | None
    versions: list[list[PlacedOperator]] = field(default_factory=list)
    state: str | None = None
    job_type: str | None = None
    ended_at_s: int | None = None
    is_busy_measured: bool | None = None
    unseen_sources: tuple[str, ...] = ()
    past_loads: Columns | None = None

    @property
    def parallelism(self) -> dict[str, int]:
        """Operator -> running parallelism, of the operators that work and for which it is known."""
        at_work = find_working(self.operators)
        reported = {entry.get("operator", ""): entry.get("parallelism") for entry in self.operators}
        return {name: count for name, count in reported.items() if name in at_work and count}

    @property
    def slots(self) -> int:
        """Slots that its running parallelism takes; 0 where none is known."""
        groups = {one.get("operator", ""): one.get("slot_sharing_group") or DEFAULT_GROUP for one in self.operators}
        return count_slots(self.parallelism, groups)

    @property
    def placed(self) -> tuple[PlacedOperator, ...]:
        """Return the operators with their places."""
        return placed_of(self.operators)

    @property
    def every_version(self) -> list[Sequence[PlacedOperator]]:
        """Return the job's graphs as far back as is read, the present one last."""
        return [*self.versions, self.placed]

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> JobState:
        """Read a row as :func:`spark_jobs.plan_inputs.struct_arrays.rows_in` gives it."""
        values: dict[str, Any] = {
            one.name: row.get(one.name) for one in fields(cls)
        }  # without an observing policy nothing is read
        operators = json.loads(row["operators"]) if row.get("operators") else []
        versions = versions_of(json.loads(row["versions"])) if row.get("versions") else []
        unseen = tuple(json.loads(row.get("unseen_sources") or "[]"))
        read = {"operators": operators, "versions": versions, "unseen_sources": unseen}
        return cls(**values | read | {"job_id": row.get("job_id") or ""})


def find_working(operators: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Return the operators that have not finished -> those of them that feed each."""
    upstream = {entry.get("operator", ""): tuple(entry.get("upstream", ())) for entry in operators}
    finished = {entry.get("operator", "") for entry in operators if entry.get("status") == FINISHED}
    return drop_finished(upstream, finished)


def placed_of(operators: Sequence[Mapping[str, Any]]) -> tuple[PlacedOperator, ...]:
    """Return the operators that :func:`spark_jobs.newest_rows.newest_graphs` wrote, with their places."""
    return tuple(
        PlacedOperator(
            entry.get("operator", ""),
            entry.get("vertex_id") or "",
            entry.get("position", 0),
            tuple(entry.get("upstream", ())),
        )
        for entry in operators
    )


def graph_of(operators: Sequence[Mapping[str, Any]]) -> JobGraph:
    """Return the graph of the operators that :func:`spark_jobs.newest_rows.newest_graphs` wrote.

    Those that have finished are no part of it.

    Raises:
        GraphError: they are no graph.
    """
    at_work = find_working(operators)
    names = [entry.get("operator", "") for entry in operators]
    if len(set(names)) < len(names):
        raise GraphError("two operators have the same name")
    return JobGraph.from_operators(
        [
            Operator(
                name,
                at_work[name],
                entry.get("max_parallelism", 128),
                partitions=entry.get("partitions"),
                is_keyed=BY_KEY in entry.get("ship_strategies", ()),
                slot_sharing_group=entry.get("slot_sharing_group") or DEFAULT_GROUP,
            )
            for name, entry in zip(names, operators, strict=True)
            if name in at_work
        ]
    )


def limited_graph_of(operators: Sequence[Mapping[str, Any]], cluster: Cluster, job: str) -> JobGraph:
    """Return the same with the partitions of sources that the settings of the cluster name.

    Raises:
        GraphError: they are no graph.
    """
    ids = {entry.get("operator", ""): entry.get("vertex_id", "") for entry in operators}
    return graph_of(operators).with_partitions(cluster.partitions_of(job, ids))
