"""A configuration that never changes: what Phoebe's evaluation compares savings and recovery with."""

from __future__ import annotations

from lab.policies.baselines.baseline_options import StaticOptions
from models.policies.immediate_change import hold, rescale_now
from models.policies.protocol import Schedule, Situation


class Static:
    """Keeps the job as it is, or rescales it to a number of workers once.

    Args:
        options: the settings.
    """

    def __init__(self, options: StaticOptions | None = None) -> None:
        self._options = options or StaticOptions()

    def first_memory(self) -> None:
        """Return no memory."""

    def decide(self, situation: Situation, memory: None) -> tuple[Schedule, None]:
        """Return the change to the fixed configuration, none once it runs.

        Raises:
            DemandError: the forecast cannot be used.
        """
        workers = self._options.workers
        if workers is None:
            return hold(situation, "a static job keeps its parallelism"), memory
        wanted = dict.fromkeys(situation.graph.names, workers)
        return rescale_now(situation, wanted, f"a static job runs on {workers} workers"), memory
