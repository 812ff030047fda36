"""Content of a report, as plain values: the page needs neither Spark nor MLflow."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from include.tables.plan_row import PlanRow
from models.control.log_lines import LogLine


@dataclass(frozen=True, slots=True)
class LoadSeries:
    """Load that came: all sources of a job together, one value per window.

    Attributes:
        times: window starts, UTC.
        rate_per_s: target data rate.
        slots: slots the job ran with.
        late_share: share of the window in which its oldest record waited longer than allowed; empty when not known.
    """

    times: Sequence[datetime]
    rate_per_s: Sequence[float]
    slots: Sequence[float]
    late_share: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Fan:
    """Forecast of a job's load per bin: the quantiles of its sources added up."""

    times: Sequence[datetime]
    q10_per_s: Sequence[float]
    q50_per_s: Sequence[float]
    q90_per_s: Sequence[float]
    methods: Sequence[str]
    fallback_reasons: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(PlanRow):
    """One row of gold.plans and, where it was due, what became of it."""

    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """An operator's capacity over parallelism with the points it was learnt from."""

    operator: str
    parallelism: Sequence[float]
    mean_per_s: Sequence[float]
    sd_per_s: Sequence[float]
    observed: Sequence[float]
    observed_per_s: Sequence[float]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A due step of an earlier plan, or of the reactive controller: expected and realised.

    Attributes:
        apply_at: when it was due.
        status: what became of it with its named reason (:func:`spark_jobs.report.control_log.step_outcomes`), or that
            it is a step of the reactive controller or of a person's pin.
        slots, ran_slots: planned; mean of those that the job ran with, None when it was not observed.
        load_q90_per_s, load_per_s: highest of the forecast's bins; highest that came.
        p_late, late_minutes: probability in the worst bin; minutes late while it was in effect.
        recovery_s, took_s: expected; what the rescale took until it had caught up, None without one.
        minutes: how long it has been in effect.
    """

    apply_at: datetime
    status: str
    slots: int
    ran_slots: float | None
    load_q90_per_s: float | None
    load_per_s: float | None
    p_late: float | None
    late_minutes: float | None
    recovery_s: float | None
    took_s: float | None
    minutes: float


@dataclass(frozen=True, slots=True)
class Realised:
    """Measured figures of a job over the days that are drawn."""

    days: float
    late_minutes_per_day: float
    slot_hours_per_day: float
    rescales_per_day: float
    restarts_per_day: float
    recovery_s: float | None


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """Steps of plans that were due in the days shown, and those of them that went out as planned."""

    due: int
    as_planned: int


@dataclass(frozen=True, slots=True)
class PolicyCost:
    """A row of gold.backtests: what the job's last days would have cost under a policy."""

    policy: str
    cost_vs_clairvoyant: float | None
    rescales_per_day: float | None
    late_minutes_per_day: float | None
    slot_hours: float | None
    days: float | None
    recommended: bool
    in_use: bool
    note: str
    error: str


@dataclass(frozen=True, slots=True)
class JobReport:
    """One job's section.

    Attributes:
        fan: of the newest forecast.
        past_fan: for bins that are over, what was forecast in the hour before them.
        outcomes: of earlier plans' steps.
        policies: of the newest backtest, the cheapest first.
        log: what the controller decided in the last day, the newest first.
        logged_operators: names of the operators in it.
        warnings: what a person should know of the models that the plan was made with.
        carried_out: how many steps went out as planned; None where none was due.
    """

    cluster: str
    job: str
    load: LoadSeries
    fan: Fan
    steps: Sequence[Step]
    curves: Sequence[Curve]
    past_fan: Fan | None = None
    outcomes: Sequence[Outcome] = ()
    realised: Realised | None = None
    policies: Sequence[PolicyCost] = ()
    log: Sequence[LogLine] = ()
    logged_operators: Sequence[str] = ()
    warnings: Sequence[str] = ()
    carried_out: CarriedOut | None = None

    @property
    def anchor(self) -> str:
        """Identifier for links inside the page, of letters and digits whatever the job is called."""
        return f"job-{hashlib.sha256(f'{self.cluster}/{self.job}'.encode(errors='replace')).hexdigest()[:16]}"

    @property
    def operators(self) -> set[str]:
        """Names of the operators that the section speaks of."""
        of_steps = {name for step in self.steps for name in (*step.parallelism_from, *step.parallelism_to)}
        return of_steps | {curve.operator for curve in self.curves} | set(self.logged_operators)

    @property
    def planned(self) -> list[Step]:
        """Steps that are to be applied."""
        return [step for step in self.steps if step.status == "planned"]

    @property
    def recommended(self) -> PolicyCost | None:
        """The policy that the newest backtest recommends."""
        return next((one for one in self.policies if one.recommended), None)

    @property
    def most_expensive(self) -> float:
        """Largest cost of a policy against the clairvoyant's, to draw the others beside it."""
        return max((one.cost_vs_clairvoyant or 0.0 for one in self.policies), default=0.0)

    @property
    def slots_now(self) -> int:
        """Slots that the job runs with at the time of the plan."""
        return (self.steps[0].slots_from or 0) if self.steps else 0

    @property
    def slot_hours_saved(self) -> float:
        """Against staying as it is for the horizon."""
        return sum(step.slot_hours_saved or 0.0 for step in self.planned)


@dataclass(frozen=True, slots=True)
class Report:
    """The whole page: jobs, and tables given as a header and rows of text."""

    as_of: datetime
    code_version: str
    jobs: Sequence[JobReport]
    jobs_total: int
    quality: tuple[Sequence[str], Sequence[Sequence[str]]]
    quarantine: tuple[Sequence[str], Sequence[Sequence[str]]]
    models: tuple[Sequence[str], Sequence[Sequence[str]]]
    forecasts: tuple[Sequence[str], Sequence[Sequence[str]]]
    certificates: tuple[Sequence[str], Sequence[Sequence[str]]] = ((), ())
    events: tuple[Sequence[str], Sequence[Sequence[str]]] = ((), ())

    @property
    def warnings(self) -> list[str]:
        """Warnings of all jobs, each once."""
        return sorted({warning for job in self.jobs for warning in job.warnings})
