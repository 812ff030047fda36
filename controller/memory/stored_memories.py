"""What is kept of jobs between evaluations, as rows of ``ops.controller_memory``."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from controller.view.job_view import ActiveTarget, EvaluationState
from controller.view.plan_rows import JobKey, PolicyMemory
from include.domain.operator_matching import PlacedOperator
from include.lake_table import LakeTable, date_of, is_between, maybe_timestamp, timestamp_of
from include.tables import CONTROLLER_MEMORY
from models.policies.memory import dump, load

REMEMBERED_S = 6 * 3600.0
"""An older memory is not taken up again: too much happened unseen, and nothing that it holds is in force any more."""
_JOB = ["cluster", "job"]
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlacedOperators:
    """The operators of a job, as :mod:`models.policies.memory` writes them."""

    operators: tuple[PlacedOperator, ...]


class StoredMemories:
    """Reads what earlier controllers kept, and appends what has changed."""

    def __init__(self, lake: str) -> None:
        self._table = LakeTable(lake, CONTROLLER_MEMORY)

    def read(self, names: Collection[JobKey], now_s: float) -> dict[JobKey, EvaluationState]:
        """Return what was kept of some jobs last, within :data:`REMEMBERED_S`."""
        newest, result = self._read_newest(now_s), {}
        for name in names:
            if name not in newest:
                continue
            try:
                result[name] = _state_of(newest[name])
            except ValueError as error:  # written by another release: the job starts from its plan
                log.warning("%s/%s: what was kept of it cannot be read: %s", *name, error)
        return result

    def _read_newest(self, now_s: float) -> dict[JobKey, dict[str, Any]]:
        within = is_between("at", timestamp_of(now_s - REMEMBERED_S), timestamp_of(now_s))
        rows = self._table.read(list(CONTROLLER_MEMORY.columns), date_of(now_s - REMEMBERED_S), date_of(now_s), within)
        keys = rows.select([*_JOB, "at"]).append_column("place", pa.array(range(len(rows)), pa.int64()))
        newest = keys.sort_by([("at", "descending"), ("place", "descending")])
        places = newest.group_by(_JOB, use_threads=False).aggregate([("place", "first")]).column("place_first")
        return {(row["cluster"], row["job"]): row for row in rows.take(places).to_pylist()}

    def append(self, changed: Mapping[JobKey, EvaluationState], now_s: float) -> None:
        """Append what is kept now of some jobs, in one commit."""
        rows = [
            {
                "at": timestamp_of(now_s),
                "cluster": cluster,
                "job": job,
                "plan_as_of": maybe_timestamp(retained.plan_as_of_s),
                "memory": dump(retained.remembered or PolicyMemory()),
                "standing": None if retained.standing is None else dump(retained.standing),
                "operators": dump(PlacedOperators(retained.operators)) if retained.operators else None,
                "date": date_of(now_s),
            }
            for (cluster, job), retained in changed.items()
        ]
        if rows:
            self._table.append(rows)


def _state_of(row: Mapping[str, Any]) -> EvaluationState:
    own = load(PolicyMemory, row["memory"])  # of an earlier release that of no policy: as before the first time
    return EvaluationState(
        None if row["plan_as_of"] is None else row["plan_as_of"].timestamp(),
        None if row["standing"] is None else load(ActiveTarget, row["standing"]),
        own if own.policy else None,
        () if row["operators"] is None else load(PlacedOperators, row["operators"]).operators,
    )
