"""What a Python worker does with rows of bronze.metrics: the columns of samples, as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from models.observing.metric_columns import USED_AGGREGATIONS, Metrics, read_columns
from models.observing.metric_table import PLACE

REPLY_KEY = ("cluster", "job_id", "vertex_id", "observed_at")


def read_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Return rows with a column for each metric.

    Args:
        batches: ``REPLY_KEY`` and ``metrics`` of rows of bronze.metrics.
        schema: ``REPLY_KEY``, :data:`models.observing.metric_table.COLUMNS` and ``subtasks``.
    """
    for batch in batches:
        result = read_columns(_read_metrics(batch.column("metrics")), batch.num_rows)
        columns = {name: result.values[place] for name, place in PLACE.items()} | {"subtasks": result.subtasks}
        arrays = [
            pa.array(columns[field.name], field.type, from_pandas=True)
            if field.name in columns
            else batch.column(field.name)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _read_metrics(rows: pa.ListArray) -> Metrics:
    fields = dict(zip([field.name for field in rows.type.value_type], rows.flatten().flatten(), strict=True))
    names = fields["id"].dictionary_encode()
    known = names.dictionary.to_pylist()
    return Metrics(
        reply=np.asarray(pc.list_parent_indices(rows), np.int64),
        name=np.asarray(pc.fill_null(names.indices, len(known)), np.int64),
        names=[*known, ""],  # the last for metrics without a name
        values={how: fields[how].to_numpy(zero_copy_only=False) for how in USED_AGGREGATIONS},
    )
