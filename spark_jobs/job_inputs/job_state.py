"""What is known of a job before it is planned, as one row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from include.domain.graph import BY_KEY, JobGraph, Operator
from include.settings import Cluster
from spark_jobs.job_inputs.struct_arrays import Columns


@dataclass(frozen=True, slots=True)
class JobState:
    """One row of :func:`spark_jobs.job_inputs.newest_rows.job_states` with the history that its policy asks for.

    Attributes:
        windows: of :func:`spark_jobs.job_inputs.windows.recent_windows`; None for a policy that does not look at them.
        memory, memory_policy: what a policy left at the last plan, and which.
        bins, forecast_as_of_s, forecast_version: of
            :func:`spark_jobs.job_inputs.newest_rows.newest_forecasts`; None where there is no forecast.
    """

    cluster: str
    job: str
    job_id: str
    operators: list[dict[str, Any]]
    seen_at_s: int
    observed_until_s: int | None
    observed_after_s: int | None
    windows: Columns | None
    memory: str | None
    memory_policy: str | None
    bins: Columns | None
    forecast_as_of_s: int | None
    forecast_version: str | None

    @property
    def parallelism(self) -> dict[str, int]:
        """Operator -> running parallelism, of the operators for which it is known."""
        return {entry.get("operator", ""): entry["parallelism"] for entry in self.operators if entry.get("parallelism")}

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> JobState:
        """Read a row as :func:`spark_jobs.job_inputs.struct_arrays.rows_in` gives it."""
        values: dict[str, Any] = {
            one.name: row.get(one.name) for one in fields(cls)
        }  # without an observing policy nothing is read
        return cls(**values | {"operators": json.loads(row["operators"])})


def graph_of(operators: Sequence[Mapping[str, Any]]) -> JobGraph:
    """Return the graph of the operators that :func:`spark_jobs.job_inputs.newest_rows.newest_graphs` wrote.

    Raises:
        GraphError: they are no graph.
    """
    return JobGraph.from_operators(
        [
            Operator(
                entry.get("operator", ""),
                tuple(entry.get("upstream", ())),
                entry.get("max_parallelism", 128),
                partitions=entry.get("partitions"),
                is_keyed=BY_KEY in entry.get("ship_strategies", ()),
            )
            for entry in operators
        ]
    )


def limited_graph_of(operators: Sequence[Mapping[str, Any]], cluster: Cluster, job: str) -> JobGraph:
    """Return the same with the partitions of sources that the settings of the cluster name.

    Raises:
        GraphError: they are no graph.
    """
    ids = {entry.get("operator", ""): entry.get("vertex_id", "") for entry in operators}
    return graph_of(operators).with_partitions(cluster.partitions_of(job, ids))
