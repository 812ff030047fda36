"""A configuration that never changes: what Phoebe's evaluation compares savings and recovery with."""

from __future__ import annotations

from models.policies.immediate_change import hold, rescale_now
from models.policies.protocol import Schedule, Situation


class Static:
    """Keeps the job as it is, or rescales it to a number of workers once.

    Args:
        workers: parallelism of every operator; None leaves the job as it is found.
    """

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be at least 1, is {workers}")
        self._workers = workers

    def first_memory(self) -> None:
        """Return no memory."""

    def decide(self, situation: Situation, memory: None) -> tuple[Schedule, None]:
        """Return the change to the fixed configuration, none once it runs.

        Raises:
            DemandError: the forecast cannot be used.
        """
        if self._workers is None:
            return hold(situation, "a static job keeps its parallelism"), memory
        wanted = dict.fromkeys(situation.graph.names, self._workers)
        return rescale_now(situation, wanted, f"a static job runs on {self._workers} workers"), memory
