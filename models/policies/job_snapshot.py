"""A job at one moment, as whoever hosts its policy knows it: the controller, the plan stage or a replay."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from include.domain.graph import JobGraph
from include.settings import Planner
from models.bundle.job_models import JobModels, RecoveryModel
from models.policies.observations import Observations
from models.recovery.recovery_model import UNTRAINED
from models.scheduling.slot_bounds import SlotBounds


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A job at one moment.

    Attributes:
        now_s: epoch seconds.
        graph: the job.
        running: operator -> parallelism; of a job that restarts, what it ran with.
        up: whether it runs at all.
        observations: the latest windows, at least those since the last evaluation.
        slots_max: most slots of the job.
        options: the planner's settings.
        restarting: whether it is known to have failed and is being brought back.
        models: of the job; None before the first training that had anything to learn from.
        bounds: of its slots over the next day, by its schedules.
        taskmanager_slots: slots of a TaskManager, of which the job pays whole ones; 1 where other jobs share them.
        seed: of :func:`draw_seed`, for a policy that draws random numbers; not negative.
    """

    now_s: int
    graph: JobGraph
    running: Mapping[str, int]
    up: bool
    observations: Observations
    slots_max: int
    options: Planner
    restarting: bool = False
    models: JobModels | None = None
    bounds: SlotBounds = field(default_factory=SlotBounds)
    taskmanager_slots: int = 1
    seed: int = 0

    @property
    def recovery(self) -> RecoveryModel:
        """How long its rescales and restarts are expected to take."""
        return UNTRAINED if self.models is None else self.models.recovery


def draw_seed(job: str, now_s: int) -> int:
    """Return the seed of a policy's random numbers: the same job, ``cluster/job``, at the same time draws the same."""
    return zlib.crc32(f"{job}/{now_s}".encode())
