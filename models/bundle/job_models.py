"""The models of one job: the contract between training, which fits them, and planning, which reads them.

| name | meaning | unit |
| --- | --- | --- |
| capacity | records that an operator can process (a source: take in) at a parallelism, PA(p) of ContTune | records/s |
| selectivity | records out per record in | 1 |
| recovery | from the stop of a job until its backlog is worked off | s |
| utilisation | load / capacity of the most loaded operator, 0..1 | 1 |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from include.domain.graph import JobGraph
from models.arrays import Floats, Ints
from models.bundle.state_factor import state_factor
from models.topology.edges import Edge, complete_ratios

EventKind = Literal["rescale", "restart"]
CauseKind = Literal["rescale", "upgrade", "taskmanager_lost", "job_failure"]
"""Of silver.rescales; the last two are restarts."""


@dataclass(frozen=True, slots=True)
class CapacityCurve:
    """Posterior of one operator's capacity over its parallelism.

    Attributes:
        parallelism: (n,) the grid 1, 2, ..., n.
        mean_per_s: (n,) expected capacity, records/s.
        sd_per_s: (n,) standard deviation of the capacity itself (the noise of one window is not in it), records/s;
            calibrated, so that mean -+ 1.28 of them hold 80%.
        observed: (m,) observed parallelisms, ascending.
        observed_per_s: (m,) mean of the recent capacities observed there, records/s.
        slope_per_s: slope of the linear mean through the origin, records/s per unit of parallelism.
        length_scale: of the residual's kernel, in units of parallelism; NaN when the curve is the line alone.
        signal_ratio: residual variance / noise variance, the second hyperparameter; NaN with the line alone.
        noise_share: standard deviation of one window's capacity / its mean.
        tail_ratio: (n,) by how much more an interval of 95% is wider than that of 80%, compared with a normal
            distribution; None: as in a normal distribution.
    """

    parallelism: Ints
    mean_per_s: Floats
    sd_per_s: Floats
    observed: Ints
    observed_per_s: Floats
    slope_per_s: float
    length_scale: float = float("nan")
    signal_ratio: float = float("nan")
    noise_share: float = float("nan")
    tail_ratio: Floats | None = None

    def __post_init__(self) -> None:
        if not self.parallelism.shape == self.mean_per_s.shape == self.sd_per_s.shape:
            raise ValueError("parallelism, mean_per_s and sd_per_s must have one length")
        if self.observed.shape != self.observed_per_s.shape:
            raise ValueError("observed and observed_per_s must have one length")


@dataclass(frozen=True, slots=True)
class RecoveryModel:
    """Downtime and catch-up of a job.

    Attributes:
        downtime_rescale_s, downtime_rescale_sd_s: expected downtime of a planned rescale and its standard deviation.
        downtime_restart_s, downtime_restart_sd_s: the same for a restart after a failure.
        checkpoint_interval_s: I of Phoebe: age of the last checkpoint that a failure is expected to find; the input
            of that time is processed twice.
        events: how many events of this job the model was learned from (0: it is the fleet's).
        upgrade_s, taskmanager_lost_s, job_failure_s: expected downtimes of these kinds apart; 0 in a model that was
            made before they were told apart.
        rescale_slope, restart_slope: relative change of a downtime per relative change of the state's size.
        state_bytes: size of the state that the expected downtimes are for; 0 where it is not known.
        factor_80, factor_95: of the intervals of recovery times, see models/recovery/intervals.py.
    """

    downtime_rescale_s: float
    downtime_rescale_sd_s: float
    downtime_restart_s: float
    downtime_restart_sd_s: float
    checkpoint_interval_s: float
    events: int
    upgrade_s: float = 0.0
    taskmanager_lost_s: float = 0.0
    job_failure_s: float = 0.0
    rescale_slope: float = 0.0
    restart_slope: float = 0.0
    state_bytes: float = 0.0
    factor_80: float = 1.2816
    factor_95: float = 1.96

    def downtime_s(self, kind: EventKind | CauseKind, state_bytes: float = math.nan) -> float:
        """Return the expected downtime of an event, for the usual size of the state or for another one."""
        usual_s = self.downtime_rescale_s if kind == "rescale" else self.downtime_restart_s
        known_s = {
            "upgrade": self.upgrade_s,
            "taskmanager_lost": self.taskmanager_lost_s,
            "job_failure": self.job_failure_s,
        }
        centre_s = known_s.get(kind, usual_s)
        slope = self.rescale_slope if kind == "rescale" else self.restart_slope
        factor = state_factor(np.array([slope]), np.array([state_bytes]), np.array([self.state_bytes]))
        return (centre_s if centre_s > 0 else usual_s) * float(factor[0])

    def recovery_s(self, load_per_s: npt.ArrayLike, capacity_per_s: npt.ArrayLike, *, kind: EventKind) -> Floats:
        """Return (...) the seconds until the backlog of an event is worked off; load and capacity are (...) records/s.

        Closed form of Phoebe's Section III-B: R = D + load (I + D) / (capacity - load), infinite where the load is not
        below the capacity.  A planned rescale stops with a savepoint, so nothing is replayed: I = 0.
        """
        replay_s = 0.0 if kind == "rescale" else self.checkpoint_interval_s
        return closed_form_recovery_s(self.downtime_s(kind), replay_s, load_per_s, capacity_per_s)


def closed_form_recovery_s(
    downtime_s: npt.ArrayLike, replay_s: npt.ArrayLike, load_per_s: npt.ArrayLike, capacity_per_s: npt.ArrayLike
) -> Floats:
    """Return R = D + load (I + D) / (capacity - load) of Phoebe, infinite where load >= capacity; all broadcast.

    >>> closed_form_recovery_s(45.0, 30.0, 1000.0, [900.0, 1500.0, 2000.0]).tolist()
    [inf, 195.0, 120.0]
    """
    downtime, replay = np.asarray(downtime_s, float), np.asarray(replay_s, float)
    load, capacity = np.asarray(load_per_s, float), np.asarray(capacity_per_s, float)
    headroom = capacity - load
    with np.errstate(divide="ignore", invalid="ignore"):
        catch_up_s = load * (replay + downtime) / headroom
    return np.asarray(np.where(headroom > 0, downtime + catch_up_s, np.inf), float)


@dataclass(frozen=True, slots=True)
class LatencyModel:
    """Latency of a job over its utilisation, non-decreasing and piecewise linear.

    Attributes:
        knots: (n,) utilisation, ascending.
        latency_at_knots_ms: (n,) latency there; n = 0 when no latency was observed.
    """

    knots: Floats
    latency_at_knots_ms: Floats

    def __post_init__(self) -> None:
        if self.knots.shape != self.latency_at_knots_ms.shape:
            raise ValueError("knots and latency_at_knots_ms must have one length")

    def latency_ms(self, utilisation: npt.ArrayLike) -> Floats:
        """Return the expected latency, (...) ms; flat beyond the knots, NaN when none was ever measured."""
        at = np.asarray(utilisation, float)
        if not len(self.knots):
            return np.full(at.shape, np.nan)
        return np.asarray(np.interp(at, self.knots, self.latency_at_knots_ms), float)


@dataclass(frozen=True, slots=True)
class JobModels:
    """All models of one job.

    Attributes:
        capacity: operator -> curve; an operator whose busy time Flink never measured is absent.
        selectivity: operator -> records out per record in; of a source per record that it takes in.
        recovery, latency: of the whole job.
        edges: edge -> records over it per record that the operator before it takes; NaN where it is not known. An edge
            that is missing is its operator's selectivity, where that feeds no other.
    """

    capacity: Mapping[str, CapacityCurve]
    selectivity: Mapping[str, float]
    recovery: RecoveryModel
    latency: LatencyModel
    edges: Mapping[Edge, float] = field(default_factory=dict)

    def edge_ratios(self, graph: JobGraph) -> dict[Edge, float]:
        """Return the ratio of each edge of a graph, NaN where it is not known.

        Raises:
            GraphError: nothing is known of an operator that feeds others.
        """
        return complete_ratios(graph, self.edges, self.selectivity)
