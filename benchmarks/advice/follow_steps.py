"""A controller of the simulator that follows the steps of an appraisal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lab.commands.history import POLL_BEFORE_WINDOW_END_S
from lab.simulation.control import FleetController, FleetSnapshot
from models.arrays import Ints


@dataclass(frozen=True, slots=True)
class FollowSteps:
    """A controller that gives some jobs the parallelism of their steps, and leaves the others to another controller.

    Attributes:
        other: decides for all others, and until the first step.
        start_s: epoch seconds of the simulation's begin.
        steps: place of a job in the fleet -> (n,) epoch seconds and (n, O) parallelism in the fleet's order.
    """

    other: FleetController
    start_s: float
    steps: Mapping[int, tuple[Ints, Ints]]

    def __call__(self, snapshot: FleetSnapshot) -> Ints:
        """Return the wanted parallelism (J, O)."""
        wanted = np.array(self.other(snapshot))
        for job, (at_s, parallelism) in self.steps.items():
            # A decision that the replay took at a full window is taken at the poll just before it.
            now_s = self.start_s + POLL_BEFORE_WINDOW_END_S + snapshot.time_s
            place = int(np.searchsorted(at_s, now_s, side="right")) - 1
            if place >= 0:
                wanted[job, : parallelism.shape[1]] = parallelism[place]
        return wanted
