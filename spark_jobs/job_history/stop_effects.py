"""What followed the stops of jobs, in a Python worker, from the samples of their sources."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.tables import RESCALES
from models.observing.catch_ups import LOAD_AFTER_WINDOWS, EffectWindow, SourcePolls, find_effects
from models.observing.samples import LONGEST_GAP_WINDOWS
from spark_jobs.job_history.arrow_rows import micros, to_table

_KEY = ("cluster", "job", "started_at")
EFFECTS = (
    "caught_up_at",
    "unseen_s",
    "emitted_records",
    "pending_records",
    "pending_before_records",
    "load_per_s",
    "load_after_per_s",
    "source_load_per_s",
)
EFFECT_COLUMNS = {name: RESCALES.columns[name] for name in (*_KEY, *EFFECTS)} | {"is_whole": "BOOLEAN"}
"""``is_whole`` tells whether the hours that are looked at hold all that the effects come from."""
_MEASURED = ("since_last_s", "age_s", "target_per_s", "taken_total", "pending")
SOURCE_COLUMNS = pa.schema(
    [
        *[(name, pa.string()) for name in ("cluster", "job", "operator")],
        ("window_s", pa.int32()),
        ("observed_at", pa.timestamp("us", "UTC")),
        *[(name, pa.float64()) for name in _MEASURED],
    ]
)
"""Samples of sources that show their backlog: ``age_s`` is that of the oldest record not through the job, null where it
is not known, as is ``target_per_s``; ``taken_total`` (records since the job runs) and ``pending`` are as read,
``since_last_s`` is null for the first of a vertex."""


@dataclass(frozen=True, slots=True)
class StopSpans:
    """Stops whose effects are looked for, and in which hours.

    Attributes:
        spans: (cluster, job) -> when each began, when the job ran again and until when samples are looked at, epoch
            milliseconds.
        start_ms, end_ms: the hours whose samples are looked at.
        caught_up_lag_s: a source has caught up when its oldest record that is not through the job is younger.
    """

    spans: Mapping[tuple[str, str], Sequence[tuple[int, int | None, int]]]
    start_ms: int
    end_ms: int
    caught_up_lag_s: float


def read_effects(samples: pa.RecordBatch, stops: StopSpans, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Return what followed the stops of some jobs, rows of a schema with ``EFFECT_COLUMNS``.

    Samples are all of these jobs, ``SOURCE_COLUMNS``; other columns of the schema are null.
    """
    jobs = samples.select(["cluster", "job"])
    keys = set(zip(*(jobs[name].to_pylist() for name in ("cluster", "job")), strict=True))
    for cluster, job in sorted(keys & stops.spans.keys()):
        is_own = pc.and_(pc.equal(jobs["cluster"], cluster), pc.equal(jobs["job"], job))
        own = pa.table(samples.filter(is_own)).sort_by([("operator", "ascending"), ("observed_at", "ascending")])
        effects = [_effects_of(own, span, stops) for span in stops.spans[cluster, job]]
        yield from to_table([{"cluster": cluster, "job": job} | row for row in effects], schema).to_batches()


def _effects_of(samples: pa.Table, span: tuple[int, int | None, int], stops: StopSpans) -> dict[str, object]:
    started_ms, running_ms, until_ms = span
    window_s = samples["window_s"][0].as_py()
    event = EffectWindow(started_ms, running_ms, until_ms, window_s, LONGEST_GAP_WINDOWS * window_s)
    effects = find_effects(event, _polls_by_source(samples), stops.caught_up_lag_s)
    known_ms = None if running_ms is None else running_ms + 1000 * LOAD_AFTER_WINDOWS * window_s
    is_measured = effects.caught_up_ms is not None and known_ms is not None and known_ms <= stops.end_ms
    return {
        **{name: _known(getattr(effects, name)) for name in EFFECTS if name != "caught_up_at"},
        "started_at": micros(started_ms),
        "caught_up_at": micros(effects.caught_up_ms),
        "is_whole": is_measured and started_ms >= stops.start_ms,
        "source_load_per_s": list(effects.source_load_per_s.items()) or None,
    }


def _polls_by_source(samples: pa.Table) -> dict[str, SourcePolls]:
    """Return the samples of each source, which are in the order of sources and time."""
    names = samples["operator"].to_numpy()
    begins = [0, *(np.flatnonzero(names[1:] != names[:-1]) + 1).tolist(), len(names)]
    at_ms = samples["observed_at"].cast(pa.int64()).to_numpy() // 1000
    values = [samples[name].to_numpy() for name in _MEASURED]
    return {
        str(names[begin]): SourcePolls(at_ms[begin:end], *(each[begin:end] for each in values))
        for begin, end in pairwise(begins)
    }


def _known(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value
