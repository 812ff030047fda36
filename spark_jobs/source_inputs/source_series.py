"""What a window tells of the load of its source."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def is_demand() -> Column:
    """Whether a window's target data rate is the demand, and no lower bound of it."""
    return ~F.coalesce("target_is_lower_bound", F.lit(False))
