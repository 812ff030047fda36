"""Rows of metrics, as Arrow arrays, checked by the value rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from models.observing.value_rules import (
    AGGREGATIONS,
    NO_RULE,
    VALUE_RULES,
    Flags,
    MetricValues,
    find_broken_rules,
    is_time,
    is_time_share,
    is_watermark,
)

FAULT_TYPE = pa.struct([(name, pa.string()) for name in ("reason", "detail", "raw")])
_REASONS = np.array([str(rule.reason) for rule in VALUE_RULES])


def find_usable_rows(metrics: pa.ListArray, max_value: float) -> pa.BooleanArray:
    """Whether a row can be used as it was read: every metric is complete and no value breaks a rule.

    Every value of the rows of ``AGGREGATES`` was read as a number; a null row cannot be used.
    """
    fields = _fields(metrics)
    is_usable = _is_given(metrics)
    values = _values(fields, fields)
    is_good = ~np.isnan(values.number) & (find_broken_rules(values, max_value) == NO_RULE)
    is_complete = is_good.all(axis=0) & _is_given(fields["id"])
    is_usable[_rows(metrics)[~is_complete]] = False
    return pa.array(is_usable)


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """Rows of metrics after the value rules.

    Attributes:
        metrics: without the values that cannot be used.
        value_faults: the values that break a rule, with the text as received; null for a row without one.
        metric_values: how many values were received.
        not_measured: how many times Flink did not measure.
    """

    metrics: pa.ListArray
    value_faults: pa.ListArray
    metric_values: pa.Int32Array
    not_measured: pa.Int32Array


def check_values(metrics: pa.ListArray, texts: pa.ListArray, places: pa.StringArray, max_value: float) -> CheckedRows:
    """Check every value of rows of ``AGGREGATES``, null where it is no number, by the value rules.

    ``texts`` has them as they were received, ``places`` what a fault's detail begins with, row by row.
    """
    fields, received, rows = _fields(metrics), _fields(texts), _rows(metrics)
    values = _values(fields, received)
    broken = find_broken_rules(values, max_value)

    def count(flags: Flags) -> pa.Int32Array:
        counts = np.bincount(rows, weights=flags.sum(axis=0), minlength=len(metrics))
        return pa.array(counts.astype(np.int32))

    return CheckedRows(
        _with_values(metrics, fields["id"], np.where(broken == NO_RULE, values.number, np.nan)),
        _find_faults(broken, received, rows, places),
        count(values.is_given),
        count(values.are_not_measured),
    )


def _fields(rows: pa.ListArray) -> dict[str, pa.Array]:
    """Return the columns of all metrics of all rows; null in an element that is null."""
    flat = rows.flatten()
    return dict(zip([field.name for field in flat.type], flat.flatten(), strict=True))


def _rows(metrics: pa.ListArray) -> npt.NDArray[np.int64]:
    """Return the row of each metric."""
    return np.asarray(pc.list_parent_indices(metrics))


def _values(fields: Mapping[str, pa.Array], received: Mapping[str, pa.Array]) -> MetricValues:
    """Return all values; ``received`` says where anything was received."""
    names = fields["id"].dictionary_encode()
    known = names.dictionary.to_pylist()
    place = np.asarray(pc.fill_null(names.indices, len(known)))  # the last for metrics without a name
    numbers = [fields[name].to_numpy(zero_copy_only=False) for name in AGGREGATIONS]
    return MetricValues(
        is_share=np.array([*map(is_time_share, known), False])[place],
        is_time=np.array([*map(is_time, known), False])[place],
        is_watermark=np.array([*map(is_watermark, known), False])[place],
        is_given=np.stack([_is_given(received[name]) for name in AGGREGATIONS]),
        is_number=np.stack([_is_given(fields[name]) for name in AGGREGATIONS]),
        number=np.stack(numbers).astype(np.float64, copy=False),
    )


def _is_given(column: pa.Array) -> Flags:
    return np.array(pc.is_valid(column), dtype=np.bool_)


def _is_null(column: pa.Array) -> Flags:
    return ~_is_given(column)


def _with_values(metrics: pa.ListArray, names: pa.StringArray, numbers: npt.NDArray[np.float64]) -> pa.ListArray:
    """Return rows with other values (aggregation by metric), null for NaN."""
    columns = [pa.array(column, mask=np.isnan(column)) for column in numbers]
    flat = pa.StructArray.from_arrays([names, *columns], fields=list(metrics.type.value_type))
    return _in_rows(flat, _rows(metrics), _is_null(metrics), metrics.type)


def _find_faults(
    broken: npt.NDArray[np.int8], received: Mapping[str, pa.Array], rows: npt.NDArray[np.int64], places: pa.StringArray
) -> pa.ListArray:
    """Return the values that break a rule, row by row, in the order in which they were received."""
    metric, aggregation = np.nonzero(broken.T != NO_RULE)
    reasons = pa.array(_REASONS[broken[aggregation, metric]], pa.string())
    names = pc.binary_join_element_wise(received["id"].take(metric), np.array(AGGREGATIONS)[aggregation], ".")
    details = pc.binary_join_element_wise(places.take(rows[metric]), names, " ")
    texts = pa.array(
        [received[AGGREGATIONS[k]][m].as_py() for m, k in zip(metric, aggregation, strict=True)], pa.string()
    )
    flat = pa.StructArray.from_arrays([reasons, details, texts], fields=list(FAULT_TYPE))
    has_none = np.ones(len(places), dtype=np.bool_)
    has_none[rows[metric]] = False
    return _in_rows(flat, rows[metric], has_none, pa.list_(FAULT_TYPE))


def _in_rows(flat: pa.Array, rows: npt.NDArray[np.int64], is_null: Flags, kind: pa.ListType) -> pa.ListArray:
    """Return elements, given in the order of their rows, as one list per row."""
    ends = np.cumsum(np.bincount(rows, minlength=len(is_null)))
    offsets = pa.array(np.concatenate(([0], ends)), pa.int32())
    return pa.ListArray.from_arrays(offsets, flat, type=kind, mask=pa.array(is_null))
