"""What the controller remembers of every job from one tick to the next, in ``ops.controller_memory``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from controller.view.plan_rows import JobKey
from include.lake_table import LakeTable, date_of, is_between, maybe_timestamp, timestamp_of
from include.tables import CONTROLLER_MEMORY

REMEMBERED_S = 6 * 3600.0
"""An older memory is not taken up again: too much happened unseen, and nothing that it holds is in force any more."""
_JOB = ["cluster", "job"]


@dataclass(frozen=True, slots=True)
class JobMemory:
    """What is remembered of a job.

    Attributes:
        at_s: when it was written, epoch seconds.
        plan_as_of_s: the newest plan that was known then.
        memory: of its policy with its name, JSON.
        standing: the standing intention, JSON; None without one.
        operators: of the job, by whose names both are, JSON; None where they are not known.
    """

    cluster: str
    job: str
    at_s: float
    plan_as_of_s: float | None
    memory: str
    standing: str | None = None
    operators: str | None = None


class MemoryStore:
    """The table of memories.

    Args:
        lake: folder or URI of the lake.
    """

    def __init__(self, lake: str) -> None:
        self._table = LakeTable(lake, CONTROLLER_MEMORY)

    def append_all(self, memories: Sequence[JobMemory]) -> None:
        """Append memories of several jobs in one commit."""
        self._table.append(
            {
                "at": timestamp_of(one.at_s),
                "cluster": one.cluster,
                "job": one.job,
                "plan_as_of": maybe_timestamp(one.plan_as_of_s),
                "memory": one.memory,
                "standing": one.standing,
                "operators": one.operators,
                "date": date_of(one.at_s),
            }
            for one in memories
        )

    def read_newest(self, now_s: float) -> dict[JobKey, JobMemory]:
        """Return the newest memory of every job, of the last :data:`REMEMBERED_S` before ``now_s``."""
        within = is_between("at", timestamp_of(now_s - REMEMBERED_S), timestamp_of(now_s))
        rows = self._table.read(list(CONTROLLER_MEMORY.columns), date_of(now_s - REMEMBERED_S), date_of(now_s), within)
        keys = rows.select([*_JOB, "at"]).append_column("place", pa.array(range(len(rows)), pa.int64()))
        newest = keys.sort_by([("at", "descending"), ("place", "descending")])
        places = newest.group_by(_JOB, use_threads=False).aggregate([("place", "first")]).column("place_first")
        return {
            (row["cluster"], row["job"]): JobMemory(
                cluster=row["cluster"],
                job=row["job"],
                at_s=row["at"].timestamp(),
                plan_as_of_s=None if row["plan_as_of"] is None else row["plan_as_of"].timestamp(),
                memory=row["memory"],
                standing=row["standing"],
                operators=row["operators"],
            )
            for row in rows.take(places).to_pylist()
        }
