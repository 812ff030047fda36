"""The batches that series are forecast in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from models.arrays import Ints
from spark_jobs.lake import frame_of
from spark_jobs.source_inputs.source_rates import SourceName
from spark_jobs.source_inputs.source_windows import SERIES

BATCHES = 16
"""Groups that the series are dealt into; each is cut into chunks of bounded size again."""
SAMPLE_SERIES = 64
"""The global model is fitted on so many series, drawn by a hash of their names: the time is the same for any fleet."""
CHAMPION_MEMORY = timedelta(days=7)
"""A champion not confirmed for this long is dropped."""


def read_hashes(spark: SparkSession, names: Sequence[SourceName]) -> Ints:
    """Return a hash of each source's names, by which it is dealt into a batch and drawn for the sample, shape (n,).

    Spark's own, which earlier releases took; of so few rows it needs no job.
    """
    if not names:
        return np.zeros(0, np.int64)
    rows = frame_of(spark, pa.table(list(map(pa.array, zip(*names, strict=True))), names=list(SERIES)))
    return np.array([row[0] for row in rows.select(F.xxhash64(*SERIES)).collect()], np.int64)
