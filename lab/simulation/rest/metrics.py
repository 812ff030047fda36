"""The reply of ``subtasks/metrics``: aggregates over the subtasks of a vertex.

The model has no single subtasks; their spread follows from the operator's imbalance: the busiest is ``1 + imbalance``
times the mean, the least busy ``1 - imbalance`` times, and none differs when there is only one.
"""

from __future__ import annotations

import re

import numpy as np

from include.flink.endpoints import AGGREGATES, SOURCE_METRICS, VERTEX_METRICS
from lab.simulation.fleet import Fleet
from lab.simulation.samples import SampledMetrics
from lab.simulation.spec import OperatorSpec
from models.arrays import Floats

# Weeks of replies: of the gauges beside the counters only busy time is kept, whose "NaN" readers must cope with.
_EXCLUDED = ("numRecordsInPerSecond", "numRecordsOutPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond")
POLLED = tuple(name for name in VERTEX_METRICS if name not in _EXCLUDED)
# A source operator's own counters stand beside its backlog under the operator's name.
OF_SOURCE = tuple(dict.fromkeys(("numRecordsIn", "numRecordsOut", *SOURCE_METRICS)))
BUSY = POLLED.index("busyTimeMsPerSecond")
_GAUGES = slice(BUSY, BUSY + 1)
_WHOLE = [at for at, name in enumerate(POLLED + OF_SOURCE) if not name.endswith("PerSecond")]
_NAME_CHARACTERS = 80  # Flink cuts the name of an operator in its metrics there


def list_columns(operator: OperatorSpec) -> list[int]:
    """Return which of the metrics of :func:`aggregate_metrics` a vertex has; those of a source operator come last."""
    shown = [name for name in OF_SOURCE if name != "pendingRecords" or operator.shows_backlog]
    of_source = [len(POLLED) + OF_SOURCE.index(name) for name in shown]
    return [*range(len(POLLED)), *([] if operator.upstream else of_source)]


def list_metric_ids(operator: OperatorSpec) -> tuple[str, ...]:
    """Return the ids that Flink gives to a vertex's metrics, in the order of :func:`list_columns`.

    A source operator's own metrics carry its name, cut and without the characters that Flink replaces.
    """
    prefix = re.sub(r"[ :.,]", "_", operator.head[:_NAME_CHARACTERS])
    names = (*POLLED, *(f"{prefix}.{name}" for name in OF_SOURCE))
    return tuple(names[at] for at in list_columns(operator))


def build_metrics_template(ids: tuple[str, ...], measured: bool) -> str:
    """Return a %-template of a reply for five numbers per metric, in the order of ``AGGREGATES``.

    Args:
        ids: of the metrics, see :func:`list_metric_ids`.
        measured: False right after a start, when busy time is the string "NaN" (Flink 1.x and legacy sources); such a
            template takes five numbers less.
    """
    entries = []
    for metric in ids:
        if metric == "busyTimeMsPerSecond" and not measured:
            values = [f'"{aggregate}":"NaN"' for aggregate in AGGREGATES]
        else:
            values = [f'"{aggregate}":%.1f' for aggregate in AGGREGATES]
        entries.append(f'{{"id":"{metric}",{",".join(values)}}}')
    return f"[{','.join(entries)}]"


def _compute_spread(fleet: Fleet, parallelism: Floats) -> Floats:
    """Return (K, J, O) relative distance of the extreme subtasks from the mean, 0 for one subtask."""
    own = np.zeros(fleet.shape)
    for j, spec in enumerate(fleet.specs):
        own[j, : len(spec.operators)] = [operator.imbalance for operator in spec.operators]
    return own * (1.0 - 1.0 / parallelism)


def aggregate_metrics(fleet: Fleet, samples: SampledMetrics) -> Floats:
    """Return the aggregates of every metric, (K, J, O, metrics, 5): those polled, then those of source operators.

    Counters, times and the backlog are whole numbers per subtask as in Flink.  ``skew`` is Flink's mean absolute
    deviation in percent of the mean, taken as half the spread.
    """
    p = np.maximum(samples.parallelism, 1).astype(np.float64)
    counts = [np.floor(samples.records_in) / p, np.floor(samples.records_out) / p]
    busy = np.round(1000.0 * np.clip(samples.busy, 0.0, 1.0))
    times = [np.floor(1000.0 * total) for total in (samples.busy_s, samples.idle_s, samples.backpressured_s)]
    of_source = {
        "numRecordsIn": counts[0],
        "numRecordsOut": np.floor(samples.records_taken) / p,
        "pendingRecords": np.floor(samples.pending) / p,
    }
    mean = np.stack([*counts, busy, *times, *(of_source[name] for name in OF_SOURCE)], axis=-1)
    spread = _compute_spread(fleet, p)[..., None]
    result = np.empty((*mean.shape, len(AGGREGATES)))
    result[..., 0], result[..., 1] = mean * (1.0 - spread), mean * (1.0 + spread)
    result[..., _WHOLE, :2] = np.round(result[..., _WHOLE, :2])
    result[..., _GAUGES, :2] = np.minimum(np.round(result[..., _GAUGES, :2]), 1000.0)
    result[..., 2], result[..., 3] = mean, mean * p[..., None]
    result[..., 4] = np.where(mean > 0.0, 50.0 * spread, 0.0)
    return result
