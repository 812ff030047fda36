"""Rows of many jobs in the driver, brought together by job as Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from models.arrays import Ints

Job = tuple[str, str]
"""Cluster and job."""
Columns = Mapping[str, npt.NDArray[Any]]
"""Rows of one job, by column."""
_ROWS_AT_ONCE = 500_000


def list_keys(rows: pa.Table) -> list[Job]:
    """Return the job of every row."""
    return list(zip(rows["cluster"].to_pylist(), rows["job"].to_pylist(), strict=True))


def find_jobs(rows: pa.Table, jobs: Sequence[Job]) -> Ints:
    """Return the index of each row's job, -1 of one that is not among ``jobs``: shape (rows,)."""
    return find_keys(rows, ("cluster", "job"), {job: at for at, job in enumerate(jobs)})


def find_keys(rows: pa.Table, columns: Sequence[str], places: Mapping[tuple[str, ...], int]) -> Ints:
    """Return the place of each row's key, -1 of one that has none: shape (rows,)."""
    distinct, row = list_distinct(rows, columns)
    return np.array([places.get(key, -1) for key in distinct], np.int64)[row]


def list_distinct(rows: pa.Table, columns: Sequence[str]) -> tuple[list[Any], Ints]:
    """Return the distinct keys of rows, and which of them each row has, shape (rows,): few keys in many rows."""
    code = np.zeros(len(rows), np.int64)
    for name in columns:
        coded = rows[name].combine_chunks().dictionary_encode("encode")
        code = code * (len(coded.dictionary) + 1) + coded.indices.to_numpy()
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    keys = rows.select(list(columns)).take(pa.array(first)).to_pydict().values()
    return list(zip(*keys, strict=True)), inverse


def join_parts(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield tables of more rows each."""
    gathered: list[pa.Table] = []
    for part in parts:
        gathered.append(part)
        if sum(map(len, gathered)) >= _ROWS_AT_ONCE:
            yield pa.concat_tables(gathered)
            gathered = []
    if gathered:
        yield pa.concat_tables(gathered)


def split_columns(rows: pa.Table, fields: Sequence[str], jobs: Sequence[Job]) -> list[Columns | None]:
    """Return the rows of each of some jobs as NumPy columns of fields, in their order; None of a job without any."""
    at = find_jobs(rows, jobs)
    order = np.argsort(at, kind="stable")
    chosen = pa.array(order[np.searchsorted(at[order], 0) :])
    ends = np.cumsum(np.bincount(at[at >= 0], minlength=len(jobs))).tolist()
    columns = {name: _take(rows[name].combine_chunks(), chosen).to_numpy(zero_copy_only=False) for name in fields}
    spans = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    return [{name: one[span] for name, one in columns.items()} if span.stop > span.start else None for span in spans]


def _take(values: pa.Array, chosen: pa.Array) -> pa.Array:
    """Return chosen values; texts as a dictionary, of which NumPy has an object each and not one for each row."""
    taken = values.take(chosen)
    return taken.dictionary_encode() if pa.types.is_string(taken.type) else taken
