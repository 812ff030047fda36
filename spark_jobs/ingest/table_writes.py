"""Slices of tables that are replaced side by side, while what comes after them is worked out."""

from __future__ import annotations

from concurrent.futures import Executor, Future

import pyarrow as pa
from pyspark.sql import DataFrame

from include.tables import Table
from spark_jobs.lake import Lake


class TableWrites:
    """The writes of one run by a pool; each replaces its slice in one transaction."""

    def __init__(self, lake: Lake, pool: Executor) -> None:
        self._lake, self._pool = lake, pool
        self._cores = lake.spark.sparkContext.defaultParallelism
        self._running: list[Future[None]] = []

    def start(
        self, table: Table, rows: DataFrame | pa.Table, where: str, core_share: float | None = None
    ) -> Future[None]:
        """Begin to replace the slice of a table that ``where`` describes; the result is there when it is written.

        At most a share of the cores writes it; without one there is a task for each partition of the rows.
        """
        if core_share is not None and not isinstance(rows, pa.Table):
            rows = rows.coalesce(max(1, int(self._cores * core_share)))
        self._running.append(self._pool.submit(self._lake.replace, table, rows, where))
        return self._running[-1]

    def wait(self) -> None:
        """Return when all that has begun is written.

        Raises:
            Exception: what one of the writes raised.
        """
        for write in self._running:
            write.result()
