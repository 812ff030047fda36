"""What is kept of jobs between evaluations, as rows of ``ops.controller_memory``."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from controller.memory.memory_store import JobMemory, MemoryStore
from controller.view.fleet_view import JobName
from controller.view.job_view import ActiveTarget, EvaluationState
from controller.view.plan_rows import PolicyMemory
from include.domain.operator_matching import PlacedOperator
from models.policies.memory import dump, load

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlacedOperators:
    """The operators of a job, as :mod:`models.policies.memory` writes them."""

    operators: tuple[PlacedOperator, ...]


class StoredMemories:
    """Reads what earlier controllers kept, and appends what has changed."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def read(self, names: Collection[JobName], now_s: float) -> dict[JobName, EvaluationState]:
        """Return what was kept of some jobs last."""
        result = self._store.read_newest(now_s)
        retained = {}
        for name in names:
            if name not in result:
                continue
            row = result[name]
            try:
                active = None if row.standing is None else load(ActiveTarget, row.standing)
                placed = () if row.operators is None else load(PlacedOperators, row.operators).operators
                own = load(
                    PolicyMemory, row.memory
                )  # of an earlier release that of no policy: as before the first time
                retained[name] = EvaluationState(row.plan_as_of_s, active, own if own.policy else None, placed)
            except ValueError as error:  # written by another release: the job starts from its plan
                log.warning("%s/%s: what was kept of it cannot be read: %s", *name, error)
        return retained

    def append(self, changed: Mapping[JobName, EvaluationState], now_s: float) -> None:
        """Append what is kept now of some jobs."""
        rows = [
            JobMemory(
                *name,
                at_s=now_s,
                plan_as_of_s=retained.plan_as_of_s,
                memory=dump(retained.remembered or PolicyMemory()),
                standing=None if retained.standing is None else dump(retained.standing),
                operators=dump(PlacedOperators(retained.operators)) if retained.operators else None,
            )
            for name, retained in changed.items()
        ]
        if rows:
            self._store.append_all(rows)
