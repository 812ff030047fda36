"""Situations of policies from their parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from include.domain.graph import JobGraph
from include.settings import Planner
from models.bundle.job_models import JobModels
from models.policies.job_snapshot import Snapshot
from models.policies.observations import Observations
from models.policies.protocol import PastLoads, Situation
from models.scheduling.demand import SourceForecast
from models.scheduling.slot_bounds import SlotBounds
from models.scheduling.slot_prices import SlotPrices


def make_situation(
    as_of_s: int,
    graph: JobGraph,
    parallelism: Mapping[str, int],
    models: JobModels,
    forecast: SourceForecast,
    slots_max: int,
    options: Planner,
    observations: Observations | None = None,
    seed: int = 0,
    slot_prices: SlotPrices | None = None,
    past_loads: PastLoads | None = None,
    bounds: SlotBounds | None = None,
) -> Situation:
    """Return the situation of a job that runs."""
    job = Snapshot(
        now_s=as_of_s,
        graph=graph,
        running=parallelism,
        up=True,
        observations=Observations.nothing() if observations is None else observations,
        slots_max=slots_max,
        options=options,
        models=models,
        bounds=SlotBounds() if bounds is None else bounds,
        seed=seed,
    )
    return Situation(job, forecast, SlotPrices.free() if slot_prices is None else slot_prices, past_loads)


def change_job(situation: Situation, **changes: Any) -> Situation:
    """Return a situation of a job that differs in some attributes of its snapshot."""
    return replace(situation, job=replace(situation.job, **changes))
