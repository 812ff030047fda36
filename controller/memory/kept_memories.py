"""What is kept of jobs between evaluations, as rows of ``ops.controller_memory``."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from controller.memory.memory_store import JobMemory, MemoryStore
from controller.view.fleet_view import JobName
from controller.view.job_view import Kept, Standing
from controller.view.plan_rows import Remembered
from include.domain.operator_matching import PlacedOperator
from models.policies.memory import dump, load
from models.policies.tidewise.tidewise_memory import ControllerMemory

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlacedOperators:
    """The operators of a job, as :mod:`models.policies.memory` writes them."""

    operators: tuple[PlacedOperator, ...]


class KeptMemories:
    """Reads what earlier controllers kept, and appends what has changed."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def read(self, names: Collection[JobName], now_s: float) -> dict[JobName, Kept]:
        """Return what was kept of some jobs last."""
        found = self._store.read_newest(now_s)
        kept = {}
        for name in names:
            if name not in found:
                continue
            row = found[name]
            try:
                standing = None if row.standing is None else load(Standing, row.standing)
                placed = () if row.operators is None else load(PlacedOperators, row.operators).operators
                remembered = load(Remembered, row.memory)
                if remembered.policy:
                    kept[name] = Kept(None, row.plan_as_of_s, standing, remembered, placed)
                else:
                    kept[name] = Kept(load(ControllerMemory, row.memory), row.plan_as_of_s, standing, operators=placed)
            except ValueError as error:  # written by another release: the job starts from its plan
                log.warning("%s/%s: what was kept of it cannot be read: %s", *name, error)
        return kept

    def append(self, changed: Mapping[JobName, Kept], now_s: float) -> None:
        """Append what is kept now of some jobs."""
        rows = [
            JobMemory(
                *name,
                at_s=now_s,
                plan_as_of_s=kept.plan_as_of_s,
                memory=dump(kept.remembered or kept.memory or ControllerMemory()),
                standing=None if kept.standing is None else dump(kept.standing),
                operators=dump(PlacedOperators(kept.operators)) if kept.operators else None,
            )
            for name, kept in changed.items()
        ]
        if rows:
            self._store.append_all(rows)
