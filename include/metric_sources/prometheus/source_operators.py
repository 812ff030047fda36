"""Metrics of source operators, added to the tasks that run them under the names that REST gives them.

REST writes an operator's name and the groups of its connector before the metric:
``Source__orders.kafkaCluster.east.pendingRecords``.  The reporter writes the keys of groups into the metric's name, and
their values into labels: ``..._operator_kafkaCluster_pendingRecords{kafkaCluster="east"}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from include.metric_sources.prometheus.client import Floats, Series
from include.metric_sources.prometheus.queries import BACKLOGS, COUNTERS_OF_SOURCES, metric_of
from include.metric_sources.prometheus.targets import Target
from include.settings.sources import Prometheus

_ID, _NAME = "operator_id", "operator_name"
Labels = frozenset[tuple[str, str]]


def add_operators(targets: Mapping[Labels, Target], result: Iterable[Series], server: Prometheus) -> None:
    """Add the metrics of operators to the tasks whose labels they bear.

    Backlogs of one name add up.  Counters of one name from several operators are left out: names are cut at 80
    characters, and whose a counter is nobody could tell. A series that is given twice counts once.
    """
    keys = {name for labels in targets for name, _ in labels}
    unique = {frozenset(series.labels.items()): series for series in result if "__name__" in series.labels}
    together: dict[tuple[Labels, str], list[Floats]] = {}
    for series in unique.values():
        own = frozenset((name, value) for name, value in series.labels.items() if name in keys)
        name = _metric_id(series.labels, keys, server)
        if own in targets and name is not None:
            together.setdefault((own, name), []).append(series.values)
    for (own, name), several in sorted(together.items(), key=lambda one: one[0][1]):
        if len(several) == 1:
            targets[own].values[name] = several[0]
        elif name.endswith(BACKLOGS):
            targets[own].values[name] = np.asarray(np.sum(several, axis=0))  # NaN where one is missing


def _metric_id(labels: Mapping[str, str], keys: Iterable[str], server: Prometheus) -> str | None:
    """Return the id that REST gives; None for a metric that was not asked for."""
    reported = metric_of(labels["__name__"], server, server.names.operator)
    metric = next((one for one in BACKLOGS if reported == one or reported.endswith(f"_{one}")), reported)
    if metric not in (*BACKLOGS, *COUNTERS_OF_SOURCES):
        return None
    groups = reported.removesuffix(metric).rstrip("_")
    further = [name for name in labels if name not in (*keys, "__name__", _ID, _NAME) and name in groups]
    further.sort(key=groups.index)
    operator = labels.get(_NAME, "").replace(":", "_")
    parts = [operator, *(part for name in further for part in (name, labels[name])), metric]
    return ".".join(part for part in parts if part)
