"""The Arrow schema of rows that a Python worker returns."""

from __future__ import annotations

from typing import cast

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def arrow_schema(ddl: str) -> pa.Schema:
    """Return the Arrow schema of Spark's; it takes a session, so on the driver alone."""
    return to_arrow_schema(cast("StructType", StructType.fromDDL(ddl)))
