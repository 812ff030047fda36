"""Jobs packed into arrays padded to (jobs, operators), so that one step serves all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lab.simulation.buffers import SEGMENT_BYTES, count_segments
from lab.simulation.capacity import compute_capacity_curve, compute_gains
from lab.simulation.queueing import QueueingNetwork
from lab.simulation.spec import JobSpec, OperatorSpec, Ship, SourceCounters, SpecError
from models.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Fleet:
    """Constants of J jobs with up to O operators and parallelism up to P.

    Attributes:
        specs: the jobs, in the order of the first axis.
        present, is_source: (J, O); padding is absent.
        mean_gain: (J, O, O) records at an operator per record of a source, bursts at their mean, see
            :func:`compute_gains`.
        network: how records flow through each of them at one time, (J, O, O); operators that emit in bursts have
            columns.
        output_ratio: (J, O) numRecordsOut of a vertex per record in.
        counted_in: (J, O) numRecordsIn of a vertex per record in.
        burst_s: (J, O) period of an operator that emits in bursts, infinite for the others.
        waits_in_poll: (J, O) sources that wait inside ``pollNext``.
        feeds, forward: (J, O, O) whether an operator feeds another, and does so without an exchange.
        curves: (J, O, P + 1) capacity C(p) in records/s.
        p_max: (J, O) bound of parallelism, 1 for padding.
        interval_s, checkpoint_rate, barrier_delay_s, record_bytes, restart_s, restore_rate, detection_s, retention_s,
            bytes_per_record, fetch_delay_s: (J,) per job, named as in :class:`JobSpec`.
    """

    specs: tuple[JobSpec, ...]
    present: Bools
    is_source: Bools
    mean_gain: Floats
    network: QueueingNetwork
    output_ratio: Floats
    counted_in: Floats
    burst_s: Floats
    waits_in_poll: Bools
    feeds: Bools
    forward: Bools
    curves: Floats
    p_max: Ints
    interval_s: Floats
    checkpoint_rate: Floats
    barrier_delay_s: Floats
    record_bytes: Floats
    restart_s: Floats
    restore_rate: Floats
    detection_s: Floats
    retention_s: Floats
    bytes_per_record: Floats
    fetch_delay_s: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """(J, O)."""
        return self.present.shape[0], self.present.shape[1]

    @property
    def in_bursts(self) -> Bools:
        """(J, O): operators that emit in bursts."""
        return np.isfinite(self.burst_s)

    def capacity(self, parallelism: Ints) -> Floats:
        """Return the capacity at the given parallelism, (J, O) records/s; padding gives 0."""
        return np.take_along_axis(self.curves, parallelism[..., None], axis=2)[..., 0]

    def compute_room(self, parallelism: Ints) -> Floats:
        """Return how many input records fit into the buffers before each operator at a parallelism, (J, O)."""
        p = parallelism.astype(np.float64)
        segments = np.where(self.feeds, count_segments(p[:, :, None], p[:, None, :], self.forward), 0.0).sum(axis=1)
        return np.asarray(segments * (SEGMENT_BYTES / self.record_bytes[:, None]))


def _ancestors(spec: JobSpec) -> Bools:
    """Return (O, O): whether row is a strict ancestor of column."""
    position = {operator.name: index for index, operator in enumerate(spec.operators)}
    above = np.zeros((len(position), len(position)), dtype=np.bool_)
    for index, operator in enumerate(spec.operators):
        for upstream in operator.upstream:
            above[:, index] |= above[:, position[upstream]]
            above[position[upstream], index] = True
    return above


def _count_in(operator: OperatorSpec) -> float:
    """Return numRecordsIn of a vertex per record that it takes in."""
    if operator.upstream or operator.counts == SourceCounters.TASK:
        return 1.0
    return 1.0 / operator.batch_records if operator.counts == SourceCounters.BATCHES else 0.0


def _column(specs: Sequence[JobSpec], field: str) -> Floats:
    return np.array([getattr(spec, field) for spec in specs], dtype=np.float64)


def pack(specs: Sequence[JobSpec]) -> Fleet:
    """Pack job descriptions into arrays.

    Raises:
        SpecError: no jobs, or two jobs with the same name.
    """
    if not specs or len({spec.name for spec in specs}) != len(specs):
        raise SpecError("a fleet needs at least one job, and job names must differ")
    jobs, width = len(specs), max(len(spec.operators) for spec in specs)
    p_top = max(spec.slots_max for spec in specs)
    gain, mean_gain = np.zeros((2, jobs, width, width))
    above, feeds, forward = np.zeros((3, jobs, width, width), dtype=np.bool_)
    curves, output_ratio, counted_in = np.zeros((jobs, width, p_top + 1)), *np.zeros((2, jobs, width))
    burst_s, waits_in_poll = np.full((jobs, width), np.inf), np.zeros((jobs, width), dtype=np.bool_)
    present, is_source = np.zeros((jobs, width), dtype=np.bool_), np.zeros((jobs, width), dtype=np.bool_)
    p_max = np.ones((jobs, width), dtype=np.int64)
    for j, spec in enumerate(specs):
        n, names = len(spec.operators), [operator.name for operator in spec.operators]
        gain[j, :n, :n], mean_gain[j, :n, :n] = compute_gains(spec, through_bursts=False), compute_gains(spec)
        above[j, :n, :n], present[j, :n] = _ancestors(spec), True
        output_ratio[j, :n] = list(spec.output_ratios.values())
        for i, operator in enumerate(spec.operators):
            upstream = [names.index(name) for name in operator.upstream]
            feeds[j, upstream, i], forward[j, upstream, i] = True, operator.ship is Ship.FORWARD
            is_source[j, i], counted_in[j, i] = not operator.upstream, _count_in(operator)
            burst_s[j, i], waits_in_poll[j, i] = operator.burst_s or np.inf, operator.waits_in_poll
            curves[j, i] = compute_capacity_curve(operator, p_top)
            p_max[j, i] = min(spec.slots_max, operator.max_parallelism)
    return Fleet(
        specs=tuple(specs),
        present=present,
        is_source=is_source,
        mean_gain=mean_gain,
        network=QueueingNetwork.from_gain(gain, above),
        output_ratio=output_ratio,
        counted_in=counted_in,
        burst_s=burst_s,
        waits_in_poll=waits_in_poll,
        feeds=feeds,
        forward=forward,
        curves=curves,
        p_max=p_max,
        interval_s=_column(specs, "checkpoint_interval_s"),
        checkpoint_rate=_column(specs, "checkpoint_bytes_per_s"),
        barrier_delay_s=_column(specs, "barrier_delay_s"),
        record_bytes=_column(specs, "record_bytes"),
        restart_s=_column(specs, "restart_base_s"),
        restore_rate=_column(specs, "restore_bytes_per_s"),
        detection_s=_column(specs, "detection_s"),
        retention_s=_column(specs, "state_retention_s"),
        bytes_per_record=_column(specs, "state_bytes_per_record"),
        fetch_delay_s=_column(specs, "fetch_delay_s"),
    )
