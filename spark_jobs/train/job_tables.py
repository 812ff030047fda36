"""Arrow tables of one job's windows as the arrays of models/training."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from models.capacity.held_up import find_held_up_share
from models.training.job_windows import KnownOperator, TrainingWindows


def read_windows(table: pa.Table, operators: Sequence[KnownOperator] = ()) -> TrainingWindows:
    """Return the windows of one job, from a row per operator and window in any order, columns of day_windows."""
    encoded = table["operator"].combine_chunks().dictionary_encode()
    names = np.array(encoded.dictionary.to_pylist(), object)
    order = np.argsort(names)
    column = np.argsort(order)[encoded.indices.to_numpy()]
    start_s, row = np.unique(_numbers(table, "start_s").astype(np.int64), return_inverse=True)
    spread = _spreader(row, column, (len(start_s), len(names)))
    is_source = np.zeros(len(names), bool)
    np.logical_or.at(is_source, column, _numbers(table, "is_source") > 0)
    ordered = names[order].tolist()
    busy, backpressured = spread(_numbers(table, "busy_share")), spread(_numbers(table, "backpressured_share"))
    return TrainingWindows(
        operators=tuple(ordered),
        start_s=start_s,
        window_s=np.nanmax(spread(_numbers(table, "window_s")), axis=1, initial=0.0),
        parallelism=np.nan_to_num(spread(_numbers(table, "parallelism"))).astype(np.int64),
        rate_per_s=spread(_numbers(table, "rate_per_s")),
        output_per_s=spread(_numbers(table, "output_per_s")),
        true_rate_per_s=spread(_numbers(table, "true_rate_per_s")),
        busy=busy,
        busy_most=spread(_numbers(table, "busy_share_max")),
        held_up=find_held_up_share(_list_feeders(ordered, operators), busy, backpressured),
        latency_ms=spread(_numbers(table, "latency_ms")),
        is_demand=spread(_numbers(table, "is_demand")) > 0,
        is_source=is_source,
        idle_share=1.0 - busy - backpressured,
    )


def _list_feeders(names: Sequence[str], operators: Sequence[KnownOperator]) -> list[list[int]]:
    """Return for each name the places of those that feed it, as far as they are among the names."""
    feeders = {one.name: one.upstream for one in operators}
    places = {name: place for place, name in enumerate(names)}
    return [[places[one] for one in feeders.get(name, ()) if one in places] for name in names]


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    """Return (n,) numbers of a column, NaN for null."""
    return np.asarray(table[name].cast(pa.float64()).to_numpy(), float)


def _spreader(row: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> Callable[[np.ndarray], np.ndarray]:
    def spread(values: np.ndarray) -> np.ndarray:
        result = np.full(shape, np.nan)
        result[row, column] = values
        return result

    return spread
