"""Which source of which job reads a topic: the keys of the settings, taken apart by the jobs that are known."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from include.domain.source_keys import find_source, group_operators, name_nearest
from include.lake_table import is_in
from include.settings import Cluster
from include.tables import OPERATOR_KEYS
from spark_jobs.lake import Lake, rows_of

log = logging.getLogger(__name__)
KNOWN_FOR = timedelta(days=14)
"""So long a job is known after it was seen last."""
_OPERATOR = ("cluster", "job", "vertex_id", "operator")
_PERIOD = {"named_from": "TIMESTAMP", "named_until": "TIMESTAMP"}
_TOPIC_SOURCE = {"cluster": "STRING", "kafka": "STRING", "topic": "STRING", "job": "STRING", "source": "STRING"}


@dataclass(frozen=True, slots=True)
class TopicSources:
    """The topics of the settings that have a source.

    Attributes:
        rows: ``cluster, kafka, topic, job, source, is_known``; ``source`` is an operator's name or its vertex id.
        operators: ``cluster, job, vertex_id, operator, named_from, named_until`` of the jobs that are known.
    """

    rows: DataFrame
    operators: DataFrame


def find_topic_sources(
    lake: Lake, names: pa.Table, clusters: Mapping[str, Cluster], until: datetime
) -> TopicSources | None:
    """Return the sources of the topics that the settings name; None when they name none.

    A key that means no source of a known job has no row, and a line in the log with what was probably meant. Known are
    jobs that the names tell of, and by silver.operator_keys those that were seen before ``until``.
    """
    wanted = {name for name, cluster in clusters.items() if any(one.topics for one in cluster.kafka.values())}
    if not wanted:
        return None
    named = (
        names.filter(pc.is_in(names["cluster"], pa.array(sorted(wanted)))).select([*_OPERATOR, *_PERIOD]).to_pylist()
    )
    observed = {tuple(row[name] for name in _OPERATOR) for row in named}
    present = {(cluster, job) for cluster, job, _, _ in observed}
    earlier = [row for row in _read_earlier(lake, wanted, until) if row[:2] not in present]
    rows: list[dict[str, object]] = []
    for name in sorted(wanted):
        jobs = group_operators(
            (job, operator, vertex) for c, job, vertex, operator in (*observed, *earlier) if c == name
        )
        rows += _rows_of_cluster(name, clusters[name], jobs)
    named += [dict(zip(_OPERATOR, row, strict=True)) for row in earlier]
    operators = rows_of(lake.spark, {**dict.fromkeys(_OPERATOR, "STRING"), **_PERIOD}, named)
    return TopicSources(rows_of(lake.spark, {**_TOPIC_SOURCE, "is_known": "BOOLEAN"}, rows).distinct(), operators)


def _rows_of_cluster(name: str, cluster: Cluster, jobs: Mapping[str, Collection[str]]) -> Iterable[dict[str, object]]:
    for kafka, brokers in cluster.kafka.items():
        for key, topics in brokers.topics.items():
            result = find_source(key, jobs)
            if result is None:
                place = f'clusters.{name}.kafka.{kafka}.topics."{key}"'
                log.warning("%s is no source of a known job and is passed over; %s", place, name_nearest(key, jobs))
                continue
            for topic in topics:
                values = (name, kafka, topic, result.job, result.operator)
                yield {**dict(zip(_TOPIC_SOURCE, values, strict=True)), "is_known": bool(jobs)}


def _read_earlier(lake: Lake, clusters: Collection[str], until: datetime) -> list[tuple[str, ...]]:
    """Return cluster, job, vertex id and operator of jobs seen before, each vertex under its last name."""
    where = f"observed_at < '{until.isoformat()}' AND {is_in('cluster', clusters)}"
    parts = lake.few(OPERATOR_KEYS).read_parts(
        [*_OPERATOR, "observed_at"], (until - KNOWN_FOR).date(), until.date(), where
    )
    last: dict[tuple[str, ...], tuple[datetime, str]] = {}
    for part in parts:
        for *vertex, operator, at in zip(*part.to_pydict().values(), strict=True):
            key = tuple(vertex)
            last[key] = max(last.get(key, (at, operator)), (at, operator))
    return [(*key, operator) for key, (_, operator) in sorted(last.items())]
