"""Fleets of any size for measuring throughput: random but plausible jobs, the same for the same seed."""

from __future__ import annotations

import numpy as np

from lab.simulation.catalogue import CatalogueJob, OperatorDraft, build_job
from lab.simulation.source_load import SourceLoad, TracePart
from lab.simulation.spec import Ship

# Names in data/traces.
TRACES = ("dsp_taxi", "dsp_wiki_de", "nab_nyc_taxi")


def generate_fleet(jobs: int, operators: int, seed: int) -> list[CatalogueJob]:
    """Return ``jobs`` jobs named ``job-0000``..., each a chain of ``operators`` (at least 2) from one source."""
    generator = np.random.default_rng([seed, jobs, operators])
    return [_draw_job(f"job-{number:04d}", operators, generator) for number in range(jobs)]


def _draw_job(name: str, operators: int, generator: np.random.Generator) -> CatalogueJob:
    needs = generator.uniform(2.0, 24.0, operators)
    drafts = [OperatorDraft("Source: events", float(needs[0]))]
    for index in range(1, operators):
        is_sink = index == operators - 1
        drafts.append(
            OperatorDraft(
                "Sink: out" if is_sink else f"step-{index}",
                float(needs[index]),
                (drafts[-1].name,),
                0.0 if is_sink else float(generator.uniform(0.5, 1.1)),
                float(generator.uniform(0.01, 0.04)),
                Ship.HASH if index % 3 == 2 else Ship.REBALANCE,
            )
        )
    part = TracePart(
        str(generator.choice(TRACES)),
        weeks=int(generator.integers(0, 3)),
        hours=int(generator.integers(0, 12)),
    )
    return build_job(name, drafts, [SourceLoad(float(generator.uniform(5e3, 1e5)), (part,))])
