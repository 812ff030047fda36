"""From a draft of a job (who needs how many subtasks at peak) to a full description with its load and its users."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lab.simulation.capacity import compute_gains
from lab.simulation.control import CpuRule, CpuRuleOptions, Timetable, UserControl
from lab.simulation.fleet import Fleet, pack
from lab.simulation.source_load import SourceLoad
from lab.simulation.spec import JobSpec, OperatorSpec, Ship, SourceCounters
from models.arrays import Floats

PEAK_UTILISATION = 0.8


@dataclass(frozen=True, slots=True)
class OperatorDraft:
    """An operator by what it needs.

    Attributes:
        need: parallelism (may be fractional) at which the peak load keeps it 80% busy.
        upstream, selectivity, contention, ship, output_shares, counts, batch_records, shows_backlog, waits_in_poll,
        burst_s: see :class:`OperatorSpec`.
    """

    name: str
    need: float
    upstream: tuple[str, ...] = ()
    selectivity: float = 1.0
    contention: float = 0.02
    ship: Ship = Ship.REBALANCE
    output_shares: Mapping[str, float] = field(default_factory=dict, hash=False)
    counts: SourceCounters = SourceCounters.OPERATOR
    batch_records: float = 100.0
    shows_backlog: bool = True
    waits_in_poll: bool = False
    burst_s: float = 0.0


@dataclass(frozen=True, slots=True)
class CatalogueJob:
    """A job with its load and with how its users set its parallelism today.

    Attributes:
        loads: one per source, in topological order.
        timetable: scheduled changes; None for the CPU rule alone.
        age_days: days since the job was submitted, when the history begins.
    """

    spec: JobSpec
    loads: tuple[SourceLoad, ...]
    rule: CpuRuleOptions
    timetable: Timetable | None = None
    age_days: float = 9.0


def build_job(
    name: str,
    drafts: Sequence[OperatorDraft],
    loads: Sequence[SourceLoad],
    *,
    rule: CpuRuleOptions | None = None,
    timetable: Timetable | None = None,
    age_days: float = 9.0,
    **options: float,
) -> CatalogueJob:
    """Build a job: the per-subtask rates follow from the needs at peak; ``options`` go to :class:`JobSpec`."""
    operators = [
        OperatorSpec(
            draft.name,
            draft.upstream,
            1.0,
            contention=draft.contention,
            selectivity=draft.selectivity,
            ship=draft.ship,
            imbalance=0.06 if draft.ship is Ship.HASH else 0.0,
            output_shares=draft.output_shares,
            counts=draft.counts,
            batch_records=draft.batch_records,
            shows_backlog=draft.shows_backlog,
            waits_in_poll=draft.waits_in_poll,
            burst_s=draft.burst_s,
        )
        for draft in drafts
    ]
    spec = JobSpec(name, tuple(operators), **options)  # type: ignore[arg-type]
    load = compute_gains(spec) @ _place_peaks(spec, loads)
    sized = tuple(
        dataclasses.replace(operator, per_subtask_per_s=float(at_peak / PEAK_UTILISATION / _compute_scaling(draft)))
        for operator, draft, at_peak in zip(operators, drafts, load, strict=True)
    )
    return CatalogueJob(
        dataclasses.replace(spec, operators=sized), tuple(loads), rule or CpuRuleOptions(), timetable, age_days
    )


def _compute_scaling(draft: OperatorDraft) -> float:
    """Return C(need) / g of a draft without curvature."""
    return draft.need / (1.0 + draft.contention * (draft.need - 1.0))


def _place_peaks(spec: JobSpec, loads: Sequence[SourceLoad]) -> Floats:
    """Place the peaks of the loads on the operators that are sources, (operators,)."""
    peaks = iter(load.peak_per_s for load in loads)
    return np.array([0.0 if operator.upstream else next(peaks) for operator in spec.operators])


def find_peaks(fleet: Fleet, jobs: Sequence[CatalogueJob]) -> Floats:
    """Return the peak rates of the sources, (J, O)."""
    peaks = np.zeros(fleet.shape)
    for row, job in enumerate(jobs):
        peaks[row, : len(job.spec.operators)] = _place_peaks(job.spec, job.loads)
    return peaks


def assemble(jobs: Sequence[CatalogueJob]) -> tuple[Fleet, UserControl]:
    """Pack jobs into a fleet with the controllers that their users run today."""
    fleet = pack([job.spec for job in jobs])
    rule = CpuRule([job.rule for job in jobs])
    return fleet, UserControl(fleet, find_peaks(fleet, jobs), [job.timetable for job in jobs], rule)
