"""The first commit of a Delta table: its columns, partitions and CHECK constraints, all at once.

Written as the protocol has it, by neither Spark nor delta-rs: Spark takes a second of processor time for it, ten times
in a new lake, and delta-rs has no way to say an expression such as ``RLIKE`` and needs a second commit for constraints.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from deltalake import DeltaTable, Schema
from obstore.exceptions import AlreadyExistsError

from include.arrow_rows import arrow_schema
from include.commit_once import commit_path
from include.object_store import open_store
from include.tables import Table
from include.tables.schema import is_by_day

_WITHOUT_CHECKS, _WITH_CHECKS = 2, 3
"""The least version of the protocol's writers that knows CHECK constraints is 3."""


def ensure_table(lake: str, table: Table) -> None:
    """Create a table unless it is there; of several processes one creates it.

    What a killed process may have left of its log is no hindrance: a table is there when its first commit is.
    """
    location = f"{lake.rstrip('/')}/{table.relative_path}"
    if DeltaTable.is_deltatable(location):
        return
    actions = _first_actions(table, round(time.time() * 1000))
    content = "".join(f"{json.dumps(action)}\n" for action in actions)
    try:
        open_store(location).put(commit_path(0), content.encode(), mode="create")
    except AlreadyExistsError:  # another process was faster
        return


def _first_actions(table: Table, now_ms: int) -> list[dict[str, Any]]:
    constraints = {f"delta.constraints.{name}": expression for name, expression in table.checks.items()}
    # Least and largest values, by default of every column, take as long as the checks; rows are sought by partition,
    # hour and key, and in a file of a partition, which holds every job, those of the keys tell nothing.
    if is_by_day(table):
        statistics = {"delta.dataSkippingStatsColumns": "hour"}
    elif table.partition_by:
        statistics = {"delta.dataSkippingNumIndexedCols": "0"}
    else:
        statistics = {"delta.dataSkippingStatsColumns": ",".join(table.keys)}
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": Schema.from_arrow(arrow_schema(table)).to_json(),
        "partitionColumns": list(table.partition_by),
        "configuration": statistics | constraints,
        "createdTime": now_ms,
    }
    writer = _WITH_CHECKS if table.checks else _WITHOUT_CHECKS
    return [
        {"commitInfo": {"timestamp": now_ms, "operation": "CREATE TABLE", "operationParameters": {}}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": writer}},
        {"metaData": metadata},
    ]
