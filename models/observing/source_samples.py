"""The samples of sources that show their backlog: what they took in, and what arrives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.observing.samples import Samples, Vertices
from models.observing.source_rates import SourceCounts, choose_taken


@dataclass(frozen=True, slots=True)
class SourceSamples:
    """m samples, all (m,), NaN for what is not known.

    Attributes:
        place: which of the samples each is.
        target_per_s: records/s that arrive.
        taken_total: records taken in since the job runs.
        pending: records that wait.
    """

    place: Ints
    target_per_s: Floats
    taken_total: Floats
    pending: Floats


def read_source_samples(samples: Samples, vertices: Vertices) -> SourceSamples:
    """Return the samples of sources, of (V,) vertices, that show their backlog."""
    polls = samples.polls
    own = vertices.of(polls.vertex)
    unknown = np.full(len(polls.vertex), np.nan)
    pending = polls.value("pending")
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        has_counted = polls.value("in_total") > 0
        counted = choose_taken(SourceCounts.read(samples.difference, has_counted, own.is_chained))
        gauges_in, gauges_out = polls.value("in_gauge_per_s"), polls.value("out_gauge_per_s")
        shown = choose_taken(SourceCounts(gauges_in, gauges_out, unknown, unknown, has_counted, own.is_chained))
        by_counters = counted / samples.elapsed_s
        taken = np.where(np.isnan(by_counters), shown, by_counters)
        growth = samples.difference("pending") / samples.elapsed_s
        target = np.maximum(taken + growth, 0.0)
    total = choose_taken(SourceCounts.read(polls.value, np.zeros(len(unknown), bool), own.is_chained))
    place = np.flatnonzero(own.is_source & ~np.isnan(pending))
    return SourceSamples(place, target[place], total[place], pending[place])
