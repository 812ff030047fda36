"""The jobs of the replay: built in, or from a file; each gets a load that needs 70% of its slots at the peak."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.conttune.queries import query
from benchmarks.replay.replay_traces import BIN_S, Trace
from lab.replay.rate_series import interpolate_steps
from lab.replay.workload import Workload, compute_curves, compute_source_gains
from lab.simulation.spec import JobSpec, OperatorSpec, SourceCounters, SpecError
from models.arrays import Floats

SLOTS = 32
# The trace's peak needs so much of the maximum parallelism.
PEAK_SHARE = 0.7
HOUR_BINS = 3600 // BIN_S
_JOB_KEYS = frozenset({"name", "operators", "slots_max", "sources"})
FILE_HELP = """A job file is JSON:
  {"name": "my-job", "slots_max": 32,
   "operators": [{"name": "source", "upstream": [], "per_subtask_per_s": 20000, "contention": 0.02,
                  "selectivity": 1.0}, ...],
   "sources": {"source": {"weight": 1.0, "lag_h": 0}}}
operators stand in topological order and may have curvature, max_parallelism, measured_per_s (capacity at 1, 2, ...) and
output_shares (records to a successor per record in, of side outputs) too, see lab/simulation/spec.py.  A source gets
weight x the trace, lag_h hours later; 1 and 0 unless given."""


@dataclass(frozen=True, slots=True)
class SourceShare:
    """How a source gets its rate from the trace.

    Attributes:
        weight: relative to the other sources.
        lag_h: hours by which it lags behind; what comes before the trace begins is the same time of its first day.
    """

    weight: float = 1.0
    lag_h: int = 0


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """A job and how the trace divides over its sources, in their order."""

    spec: JobSpec
    shares: tuple[SourceShare, ...]

    def build_workload(self, trace: Trace, step_s: int, peak_share: float = PEAK_SHARE) -> Workload:
        """Return the job with the load of a trace, scaled so that the peak needs so much of the slots.

        Five-minute means are joined linearly from middle to middle.
        """
        shapes = np.stack([share.weight * _delay(trace.values, share.lag_h) for share in self.shares], axis=1)
        means = shapes * _compute_scale(self.spec, shapes, peak_share)
        return Workload(self.spec, trace.start_s, step_s, interpolate_steps(means, BIN_S, step_s))


def _delay(values: Floats, hours: int) -> Floats:
    shift = hours * HOUR_BINS
    if not shift:
        return values
    day = 24 * HOUR_BINS
    places = np.arange(len(values)) - shift
    before = np.minimum(places % day, len(values) - 1)
    return values[np.where(places >= 0, places, before)]


def _compute_scale(spec: JobSpec, shapes: Floats, peak_share: float) -> float:
    """Return the factor at which the most loaded operator needs its share of the slots at its peak.

    Above 1, the peak is so many times what all slots can process.
    """
    loads = (shapes @ compute_source_gains(spec).T).max(axis=0)
    curves = compute_curves(spec)
    at = min(peak_share, 1.0) * spec.slots_max
    within = np.array([np.interp(at, np.arange(len(curve)), curve) for curve in curves])
    capacities = max(peak_share, 1.0) * within
    return float((capacities[loads > 0] / loads[loads > 0]).min())


def _build_query(name: str) -> Callable[[], ReplayJob]:
    def build() -> ReplayJob:
        result = query(name)
        label = "wordcount" if name == "WordCount" else f"nexmark-{name.lower()}"
        spec = replace(result.job(label), slots_max=SLOTS)
        return ReplayJob(spec, tuple(SourceShare(rate) for rate in result.unit_per_s.values()))

    return build


# The 8-operator graph: (name, upstream, parallelism that the peak needs, selectivity, contention).
_EIGHT: tuple[tuple[str, tuple[str, ...], float, float, float], ...] = (
    ("clicks", (), 7.0, 1.0, 0.01),
    ("purchases", (), 3.0, 1.0, 0.01),
    ("parse", ("clicks",), 14.0, 1.0, 0.015),
    ("filter", ("parse",), 9.0, 0.8, 0.02),
    ("validate", ("purchases",), 4.0, 1.0, 0.02),
    ("join", ("filter", "validate"), PEAK_SHARE * SLOTS, 1.0, 0.03),
    ("window", ("join",), 17.0, 0.3, 0.025),
    ("sink", ("window",), 6.0, 0.0, 0.02),
)
_CLICKS_PER_S, _PURCHASE_SHARE, _PURCHASE_LAG_H = 100_000.0, 0.15, 3


# Chained as by default: the source filters in its chain, and three operators have side outputs.
_ORDERS_PER_S, _RETAINED, _EXPRESS = 50_000.0, 0.3, 0.1
_SIDE_SOURCE, _RETURNS, _ROUTE = "Source: orders -> parse -> keep paid", "Source: returns -> parse", "route"
_SIDE_OUTPUTS: tuple[tuple[str, tuple[str, ...], float, dict[str, float]], ...] = (
    (_SIDE_SOURCE, (), 9.0, {_ROUTE: 0.9 * _RETAINED, "rejects -> Sink: dead letters": 0.1 * _RETAINED}),
    (_RETURNS, (), 3.0, {"match": 1.0}),
    (_ROUTE, (_SIDE_SOURCE,), 12.0, {"standard": 1.0 - _EXPRESS, "express": _EXPRESS}),
    ("standard", (_ROUTE,), PEAK_SHARE * SLOTS, {"match": 1.0}),
    ("express", (_ROUTE,), 4.0, {"Sink: express": 1.0}),
    ("match", ("standard", _RETURNS), 16.0, {"Sink: matched": 0.4}),
    ("rejects -> Sink: dead letters", (_SIDE_SOURCE,), 2.0, {}),
    ("Sink: express", ("express",), 1.5, {}),
    ("Sink: matched", ("match",), 6.0, {}),
)
_RETURNS_SHARE, _SIDE_CONTENTION = 0.05, 0.02


def _build_side_outputs() -> ReplayJob:
    """Return a job whose vertices send different records over each of their edges."""
    loads = dict.fromkeys((name for name, *_ in _SIDE_OUTPUTS), 0.0)
    loads |= {_SIDE_SOURCE: _ORDERS_PER_S, _RETURNS: _ORDERS_PER_S * _RETURNS_SHARE}
    operators = []
    for name, upstream, need, shares in _SIDE_OUTPUTS:
        for successor, share in shares.items():
            loads[successor] += loads[name] * share
        operators.append(
            OperatorSpec(
                name,
                upstream,
                loads[name] * (1.0 + _SIDE_CONTENTION * (need - 1.0)) / need,
                _SIDE_CONTENTION,
                selectivity=0.0,
                output_shares=shares,
                counts=SourceCounters.OPERATOR if upstream else SourceCounters.TASK,
            )
        )
    spec = JobSpec("side_outputs", tuple(operators), slots_max=SLOTS)
    return ReplayJob(spec, (SourceShare(1.0), SourceShare(_RETURNS_SHARE)))


def _build_eight() -> ReplayJob:
    loads: dict[str, float] = {}
    sent: dict[str, float] = {}
    operators = []
    for name, upstream, need, selectivity, contention in _EIGHT:
        first = _CLICKS_PER_S * (1.0 if name == "clicks" else _PURCHASE_SHARE)
        loads[name] = sum(sent[above] for above in upstream) if upstream else first
        sent[name] = loads[name] * selectivity
        each = loads[name] * (1.0 + contention * (need - 1.0)) / need
        operators.append(OperatorSpec(name, upstream, each, contention, selectivity=selectivity))
    spec = JobSpec("eight", tuple(operators), slots_max=SLOTS)
    return ReplayJob(spec, (SourceShare(1.0), SourceShare(_PURCHASE_SHARE, _PURCHASE_LAG_H)))


JOBS: dict[str, Callable[[], ReplayJob]] = {
    "wordcount": _build_query("WordCount"),
    **{f"nexmark-{number}": _build_query(number.upper()) for number in ("q1", "q2", "q3", "q5", "q8")},
    "eight": _build_eight,
    "side_outputs": _build_side_outputs,
}


def read_job(text: str) -> ReplayJob:
    """Return a job by its name or from a file.

    Raises:
        SpecError: neither, or a file that describes none.
    """
    if text in JOBS:
        return JOBS[text]()
    path = Path(text)
    if not path.is_file():
        raise SpecError(f"no job is called {text!r} and there is no such file; built in are {', '.join(JOBS)}")
    try:
        return _parse_job(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SpecError(f"{path}: {error!r}; see --help for what a job file holds") from error


def _parse_job(read: dict[str, Any]) -> ReplayJob:
    strangers = sorted(set(read) - _JOB_KEYS)
    if strangers:
        raise SpecError(f"a job has no {', '.join(strangers)}, but {', '.join(sorted(_JOB_KEYS))}")
    operators = tuple(
        OperatorSpec(
            **{
                **entry,
                "upstream": tuple(entry.get("upstream", ())),
                "measured_per_s": tuple(entry.get("measured_per_s", ())),
                "counts": SourceCounters(entry.get("counts", SourceCounters.OPERATOR)),
            }
        )
        for entry in read["operators"]
    )
    spec = JobSpec(str(read["name"]), operators, slots_max=int(read.get("slots_max", SLOTS)))
    given = read.get("sources", {})
    unknown = sorted(set(given) - set(spec.source_names))
    if unknown:
        raise SpecError(f"{unknown} are not sources of the job")
    return ReplayJob(spec, tuple(SourceShare(**given.get(name, {})) for name in spec.source_names))
