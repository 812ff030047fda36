"""Replies with a vertex's metrics to the columns of samples, in a Python worker: a struct for each reply."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from models.observing.metric_columns import USED_AGGREGATIONS, Metrics, read_columns
from models.observing.metric_table import COLUMNS, PLACE

SAMPLE_COLUMNS = (*COLUMNS, "subtasks")
SAMPLE = f"STRUCT<{', '.join(f'{name}: DOUBLE' for name in SAMPLE_COLUMNS)}>"
"""The columns of a sample, and over how many subtasks its counters were added up."""


def read_samples(metrics: pa.ListArray) -> pa.StructArray:
    """Return ``SAMPLE`` of rows of ``AGGREGATES``: null without any metric, its fields null where they are not known.

    A reply without metrics (a vertex that is being deployed) is no measurement.
    """
    result = read_columns(_take_apart(metrics), len(metrics))
    columns = {name: result.values[place] for name, place in PLACE.items()} | {"subtasks": result.subtasks}
    arrays = [pa.array(columns[name], pa.float64(), from_pandas=True) for name in SAMPLE_COLUMNS]
    has_none = pc.equal(pc.fill_null(pc.list_value_length(metrics), 0), 0)
    return pa.StructArray.from_arrays(arrays, names=list(SAMPLE_COLUMNS), mask=has_none)


def _take_apart(rows: pa.ListArray) -> Metrics:
    fields = dict(zip([field.name for field in rows.type.value_type], rows.flatten().flatten(), strict=True))
    names = fields["id"].dictionary_encode()
    known = names.dictionary.to_pylist()
    return Metrics(
        reply=np.asarray(pc.list_parent_indices(rows), np.int64),
        name=np.asarray(pc.fill_null(names.indices, len(known)), np.int64),
        names=[*known, ""],  # the last for metrics without a name
        values={how: fields[how].to_numpy(zero_copy_only=False) for how in USED_AGGREGATIONS},
    )
