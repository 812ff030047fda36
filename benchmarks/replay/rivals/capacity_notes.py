"""What a team knows of its job's capacity: the rates it has seen at each parallelism, linear in between and beyond."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from include.domain.graph import JobGraph
from lab.policies.tuning.observed_capacity import capacity_near
from models.arrays import Ints
from models.policies.observations import Observations
from models.policies.tuning import KEEP
from models.policies.tuning.capacity_history import History
from models.policies.tuning.reading import learn_histories, select_new_windows


@dataclass(frozen=True, slots=True)
class CapacityNotes:
    """Observations of a job.

    Attributes:
        histories: operator -> capacities seen at each parallelism.
        shares: operator -> its input per record of all sources together, as last seen.
        seen_until_s: end of the last window that was read; None before the first.
    """

    histories: Mapping[str, History] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    seen_until_s: float | None = None

    def learn(self, graph: JobGraph, observations: Observations) -> CapacityNotes:
        """Return the notes after windows that were not read yet."""
        fresh = select_new_windows(observations, self.seen_until_s)
        if not len(fresh):
            return self
        histories = learn_histories(self.histories, graph, fresh, KEEP)
        shares = dict(self.shares)
        sources = [graph.position(name) for name in graph.sources]
        total = float(np.nansum(fresh.processing_rate_per_s[-1, sources]))
        if total > 0:
            rates = fresh.processing_rate_per_s[-1]
            known = {name: float(rates[graph.position(name)]) / total for name in graph.names}
            shares |= {name: share for name, share in known.items() if np.isfinite(share)}
        return replace(
            self,
            histories=histories,
            shares=shares,
            seen_until_s=float(fresh.window_start_s[-1] + fresh.window_s),
        )

    def size_job(self, graph: JobGraph, load_per_s: float, limits: Ints) -> dict[str, int] | None:
        """Return operator -> the least parallelism for a load of all sources together; None before anything was seen.

        Args:
            graph: the job.
            load_per_s: records/s of all sources.
            limits: (O,) the most of each operator.
        """
        wanted = {}
        for name, most in zip(graph.names, limits.tolist(), strict=True):
            history, share = self.histories.get(name, ()), self.shares.get(name)
            if not history or share is None:
                return None
            need = load_per_s * share
            fits = (p for p in range(1, most + 1) if capacity_near(history, p) >= need)
            wanted[name] = next(fits, most)
        return wanted
