"""What is known of a job before it is planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from include.domain.finished_operators import FINISHED, drop_finished
from include.domain.graph import BY_KEY, MAX_PARALLELISM, GraphError, JobGraph, Operator
from include.domain.operator_matching import PlacedOperator
from include.domain.slots import DEFAULT_GROUP, count_slots
from include.settings import Cluster
from spark_jobs.by_job import Columns


@dataclass(frozen=True, slots=True)
class JobState:
    """What is known of a job, with the history that its policy asks for.

    Attributes:
        operators: of the newest graph; empty without one.
        versions: the graphs of the last days, of a job whose operators have changed; else empty.
        state, job_type, ended_at_s: see silver.jobs; null in a lake of an earlier release.
        is_busy_measured: whether Flink measured the busy time of any of its operators.
        past_loads: of :func:`spark_jobs.plan_inputs.past_loads.read_past_loads`; None for a job that needs none.
        unseen_sources: sources that were watched at work while nothing told their load.
        windows: of :func:`spark_jobs.plan_inputs.windows_of_jobs.read_recent_windows`; None for a
            policy that does not look at them.
        memory, memory_policy: what a policy left at the last plan, and which.
        bins, forecast_as_of_s, forecast_version: of
            :func:`spark_jobs.plan_inputs.newest_of_jobs.read_newest_forecasts`; None where there is no forecast.
    """

    cluster: str
    job: str
    job_id: str = ""
    operators: list[dict[str, Any]] = field(default_factory=list)
    seen_at_s: int | None = None
    observed_until_s: int | None = None
    observed_after_s: int | None = None
    windows: Columns | None = None
    memory: str | None = None
    memory_policy: str | None = None
    bins: Columns | None = None
    forecast_as_of_s: int | None = None
    forecast_version: str | None = None
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


def find_working(operators: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Return the operators that have not finished -> those of them that feed each."""
    upstream = {entry.get("operator", ""): tuple(entry.get("upstream", ())) for entry in operators}
    finished = {entry.get("operator", "") for entry in operators if entry.get("status") == FINISHED}
    return drop_finished(upstream, finished)


def placed_of(operators: Sequence[Mapping[str, Any]]) -> tuple[PlacedOperator, ...]:
    """Return the operators of :func:`spark_jobs.plan_inputs.newest_of_jobs.list_graphs`, with their places."""
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
    """Return the graph of the operators of :func:`spark_jobs.plan_inputs.newest_of_jobs.list_graphs`.

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
                entry.get("max_parallelism", MAX_PARALLELISM),
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
