"""What the steps of a window come to: mean flows of operators, and the metrics that a pipeline observes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lab.replay.row_states import StepPath
from lab.simulation.queueing import QueueingNetwork
from models.arrays import Bools, Floats, Ints


@dataclass(slots=True)
class WindowFlows:
    """Means over a window, (J, O) unless said otherwise.

    Attributes:
        load_per_s: input of operators.
        busy, backpressured: shares of the window.
        up: (J, 1) share in which the row ran.
        late_s: (J,) seconds during which the oldest unprocessed record was older than the target.
        lag_record_s: (J,) integral of the backlog.
    """

    load_per_s: Floats
    busy: Floats
    backpressured: Floats
    up: Floats
    late_s: Floats
    lag_record_s: Floats

    @classmethod
    def without_backlog(cls, load_per_s: Floats, capacity: Floats) -> WindowFlows:
        """Return the flows of (J, O) rows that emit what arrives, (O,) at their operators."""
        rows = len(capacity)
        busy = load_per_s / capacity
        load = np.tile(load_per_s, (rows, 1))
        return cls(load, busy, np.zeros(busy.shape), np.ones((rows, 1)), np.zeros(rows), np.zeros(rows))

    def set_from_steps(self, rows: Ints, path: StepPath, network: QueueingNetwork, steps_per_poll: int) -> None:
        """Set the flows of some rows from their steps.

        A row that stood still for a while is measured between the polls between which it ran, after a rescale with the
        new parallelism: Flink's counters begin anew with a restart.  A poll shows counters that are up to a step old
        (Flink fetches them), so the first of a run may be of the one before.  Where there are no such two polls, the
        means are those over the whole window.
        """
        load = network.compute_load(path.emitted)  # (n, K, O)
        up = path.up[:, :, None]
        busy = load / path.capacity
        held_up = network.find_backpressured(path.wanted, path.emitted, load, path.capacity * up)
        backpressured = np.where(held_up, np.maximum(up - busy, 0.0), 0.0)
        self.load_per_s[rows], self.busy[rows] = load.mean(axis=1), busy.mean(axis=1)
        self.backpressured[rows], self.up[rows, 0] = backpressured.mean(axis=1), path.up.mean(axis=1)
        runs = (path.up >= 1.0) & (path.capacity == path.capacity[:, -1:]).all(axis=2)
        runs[:, 1:] &= runs[:, :-1]
        ran: Bools = np.asarray(runs.reshape(len(rows), -1, steps_per_poll).all(axis=2), bool)
        for place in np.flatnonzero(ran.any(axis=1) & ~ran.all(axis=1)).tolist():
            measured, row = np.repeat(ran[place], steps_per_poll), rows[place]
            self.load_per_s[row], self.busy[row] = (
                load[place, measured].mean(axis=0),
                busy[place, measured].mean(axis=0),
            )
            self.backpressured[row], self.up[row, 0] = backpressured[place, measured].mean(axis=0), 1.0


@dataclass(frozen=True, slots=True)
class WindowMetrics:
    """What a window of every row showed and was; (J, O) unless said otherwise, NaN where nothing is measured.

    Attributes:
        parallelism: during the window.
        in_per_s: observed rates of whole operators, a source's is what it takes in.
        true_in_per_s: rates over busy time with the measurement noise.
        busy, backpressured, idle: shares of the window.
        backlog: records that wait at sources at its end.
        latency_ms: age of what waits at a source at the end, fetching included.
        disturbed: (J,) it overlaps a downtime or the time to settle after one.
        late_s: (J,) seconds during which the oldest unprocessed record was older than the target.
        lag_record_s: (J,) integral of the backlog over the window.
        paid: (J,) mean slots of the TaskManagers that the row has or waits for.
        ran: (J,) whether it ran through all of the window.
        arrived_per_s: (O,) at sources, NaN elsewhere.
    """

    parallelism: Ints
    in_per_s: Floats
    true_in_per_s: Floats
    busy: Floats
    backpressured: Floats
    idle: Floats
    backlog: Floats
    latency_ms: Floats
    disturbed: Bools
    late_s: Floats
    lag_record_s: Floats
    paid: Floats
    ran: Bools
    arrived_per_s: Floats

    @classmethod
    def merge(cls, parts: Sequence[WindowMetrics]) -> WindowMetrics:
        """Return what windows showed as one, of a row that stopped those in which it ran as at the end."""
        last = parts[-1]
        as_now = [part.ran & (part.parallelism == last.parallelism).all(axis=1) for part in parts]
        counts = np.where(np.any(as_now, axis=0), as_now, True)[..., None]  # (parts, J, 1)
        of_parts = {name: np.array([getattr(part, name) for part in parts]) for name in _MEANS}
        shown: dict[str, Any] = {name: _mean_known(values, counts) for name, values in of_parts.items()}
        arrived_per_s = np.mean([part.arrived_per_s for part in parts], axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            longer_s = np.nan_to_num(last.backlog * (1.0 / arrived_per_s - 1.0 / last.arrived_per_s), posinf=0.0)
        return replace(
            last,
            **shown,
            late_s=np.sum([part.late_s for part in parts], axis=0),
            lag_record_s=np.sum([part.lag_record_s for part in parts], axis=0),
            arrived_per_s=arrived_per_s,
            latency_ms=last.latency_ms + 1000.0 * longer_s,
            disturbed=np.any([part.disturbed for part in parts], axis=0),
            paid=np.mean([part.paid for part in parts], axis=0),
            ran=np.all([part.ran for part in parts], axis=0),
        )


_MEANS = ("in_per_s", "true_in_per_s", "busy", "backpressured", "idle")


def _mean_known(values: Floats, counts: Bools) -> Floats:
    """Return (J, O) means over the parts that count, of what is known in them; NaN where nothing is."""
    known = counts & ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0))
