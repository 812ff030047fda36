"""What all candidate policies of a replay have in common: cadence, prices, disturbances, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from include.settings import FleetLimits, Forecast, Planner, Training
from include.settings.slot_schedules import SlotSchedule
from include.utc import DAY_S
from lab.simulation.change_times import RESTORE_S, STOP_S, ChangeDelays
from models.capacity.fleet_prior import FleetPrior
from models.forecasting.known_events import KnownEvent


class ConditionsError(ValueError):
    """Conditions that cannot be replayed; the message says which value to change."""


@dataclass(frozen=True, slots=True)
class DecisionSchedule:
    """When policies decide about a job.

    Attributes:
        tick_s: between two decisions of a reactive policy; due steps are applied as often.
        plan_every_s: between two plans.
        plan_after_s: from a full ``plan_every_s``, up to which a plan knows the windows, to the plan itself: the
            hourly DAG ingests at minute 5 and plans at minute 15.
        window_s: length of an observation window.
        poll_s: between two polls of Flink's counters: between two polls with a restart in between nothing is measured.
        step_s: length of a step of the queueing model.
    """

    tick_s: int = 300
    plan_every_s: int = 3600
    plan_after_s: int = 900
    window_s: int = 300
    step_s: int = 10
    poll_s: int = 60

    def __post_init__(self) -> None:
        multiples = {
            "tick_s": self.tick_s % self.window_s,
            "plan_every_s": self.plan_every_s % self.tick_s,
            "plan_after_s": self.plan_after_s % self.tick_s,
            "window_s": self.window_s % self.step_s + self.window_s % self.poll_s,
            "poll_s": self.poll_s % self.step_s,
        }
        wrong = [name for name, rest in multiples.items() if rest]
        if wrong or self.tick_s <= 0 or not 0 <= self.plan_after_s < self.plan_every_s or DAY_S % self.plan_every_s:
            raise ConditionsError(
                f"a tick must hold whole windows of {self.window_s} s and those whole polls, a plan interval whole "
                f"ticks, a day whole plan intervals, and a plan must come before the next: found {self}"
            )

    @property
    def steps(self) -> int:
        """Steps in a window."""
        return self.window_s // self.step_s

    def round_to_ticks(self, wait_s: float) -> int:
        """Return how much sooner to ask for what takes so long, seconds: whole ticks, the nearest."""
        return round(wait_s / self.tick_s) * self.tick_s

    @property
    def steps_per_poll(self) -> int:
        """Steps between two polls."""
        return self.poll_s // self.step_s

    @property
    def looks(self) -> int:
        """Polls in a window, at each of which a job that falls behind is evaluated."""
        return self.window_s // self.poll_s

    def by_look(self) -> DecisionSchedule:
        """Return the cadence of windows that last from one poll to the next."""
        return replace(self, window_s=self.poll_s)


@dataclass(frozen=True, slots=True)
class Prices:
    """Cost of running a job; the first three are the weights of the MDP paper.

    Attributes:
        slots: per minute with all slots.
        late: per minute late.
        rescale: per rescale.
        lag_target_s: the job is late while its oldest unprocessed record is older.
    """

    slots: float = 0.2
    late: float = 0.4
    rescale: float = 0.4
    lag_target_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Disturbances(ChangeDelays):
    """What happens to a job whatever its policy does; what a rescale waits for as in :class:`ChangeDelays`.

    Attributes:
        rescale_downtime_s: least and most of a rescale's downtime, uniform between them: the stop, and until tasks have
            restored their state.
        failures_per_day: at times that are uniform in a day.
        failure_at_s: failures that are known, seconds since the start, in the place of drawn ones; None without.
        failure_downtime_s, failure_downtime_sd: of a failure, mean and relative deviation; Phoebe's failures are
            noticed and restarted within 90-130 s.
        failure_noticed_s: until then Flink shows a failed job as running (its default `heartbeat.timeout`).
        measurement_noise: relative deviation of a window's true rates.
        capacity_noise, capacity_memory_s: relative deviation and memory of what an operator really processes.
        settle_s: a window is disturbed until so long after a restart, as in the ingest stage.
    """

    rescale_downtime_s: tuple[float, float] = (STOP_S[0] + RESTORE_S, STOP_S[1] + RESTORE_S)
    failures_per_day: int = 1
    failure_downtime_s: float = 125.0
    failure_downtime_sd: float = 0.08
    failure_noticed_s: float = 50.0
    measurement_noise: float = 0.05
    capacity_noise: float = 0.02
    capacity_memory_s: float = 600.0
    settle_s: float = 30.0
    failure_at_s: tuple[float, ...] | None = None


AT_ONCE = Disturbances(rescale_downtime_s=(30.0, 60.0), waits_for_checkpoint=False)
"""As tables were made before changes took their time: a rescale waits for nothing, which is kinder than Flink."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Everything that is the same for all candidate policies, besides the load.

    Attributes:
        cadence, prices, disturbances: as above.
        planner, training, forecast, limits: the pipeline's settings.
        fleet: the prior from other jobs, for candidates that ask for it by name; None without a fleet.
        parameters: policy -> its parameters that are set.
        events: source -> events that people know of.
        schedules: of the job's slots, by name.
    """

    cadence: DecisionSchedule = field(default_factory=DecisionSchedule)
    prices: Prices = field(default_factory=Prices)
    disturbances: Disturbances = field(default_factory=Disturbances)
    planner: Planner = field(default_factory=Planner)
    training: Training = field(default_factory=Training)
    forecast: Forecast = field(default_factory=Forecast)
    limits: FleetLimits = field(default_factory=FleetLimits)
    fleet: FleetPrior | None = None
    parameters: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    events: Mapping[str, Sequence[KnownEvent]] = field(default_factory=dict)
    schedules: Mapping[str, SlotSchedule] = field(default_factory=dict)

    @property
    def options(self) -> Planner:
        """The planner's settings as whoever knows what changes wait for has them."""
        known = self.disturbances
        waits = {"timing.slots_wait_s": known.slots_wait_s, "timing.awaits_checkpoint": known.waits_for_checkpoint}
        return self.planner.with_values(waits)
