"""The view of all jobs: cards of the fleet's health, a table that is searched, filtered and sorted by the address."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from fleet.facts import DecisionFact, FleetStatus, HealthFact, HoldFact, JobStatus, StepFact
from fleet.health import Fault
from fleet.loads import LoadFact
from fleet.savings import PlanSaving, saving_of, sum_savings
from include.tables.plan_row import PlanRow
from include.utc import DAY_S
from page.money import Price, price_of
from page.risk import LatenessGoal, Risk, find_day_late, find_peak, judge_risk
from page.source import LakeSnapshot

ROWS = 50
SHOWS = {"": "all", "needs": "needs a person", "risk": "at risk", "held": "on hold", "steps": "to be rescaled"}
SORTS = {"": "risk", "name": "name", "load": "load", "slots": "slots", "next": "next step", "saved": "saving"}
CARDS: tuple[tuple[str, tuple[Fault, ...]], ...] = (
    ("controller", (Fault.CONTROLLER_LATE, Fault.CLUSTER_SILENT)),
    ("plan", (Fault.PLAN_OLD,)),
    (
        "data",
        (
            *(Fault.TABLE_LOST, Fault.METRICS_OLD, Fault.QUARANTINE_RISING, Fault.FILES_REFUSED, Fault.RAW_FOLDER_GONE),
            *(Fault.STAGE_FAILING, Fault.STAGE_EMPTY, Fault.DISK_FULL),
        ),
    ),
    ("models", (Fault.MODELS_OLD, Fault.CHAMPION_REFUSED, Fault.MODELS_LOST, Fault.MODELS_OFF, Fault.COVERAGE_OFF)),
    (
        "jobs",
        (
            *(Fault.TABLE_LOST, Fault.WAITS_FOR_PERSON, Fault.FOREIGN_CHANGE),
            *(Fault.JOB_LATE, Fault.JOB_DOWN, Fault.STEPS_REFUSED, Fault.STEPS_ROLLED_BACK),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Query:
    """What the address asks for."""

    q: str = ""
    cluster: str = ""
    mode: str = ""
    show: str = ""
    sort: str = ""
    page: int = 1
    at: str = ""

    def link(self, **changed: object) -> str:
        """Return the address with something changed; what is empty is left out, and the page begins anew."""
        values: dict[str, object] = {name: getattr(self, name) for name in self.__slots__} | {"page": 1} | changed
        given = {name: value for name, value in values.items() if value and (name, value) != ("page", 1)}
        return f"?{urlencode(given)}"


@dataclass(frozen=True, slots=True)
class FaultSummary:
    """What is the same of some scopes."""

    scopes: tuple[str, ...]
    detail: str
    remedy: str
    needs_person: bool


@dataclass(frozen=True, slots=True)
class HealthCard:
    """One card of the fleet's health: its faults first; without any, how it is."""

    name: str
    needs_person: int
    lines: tuple[FaultSummary, ...]


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job of the table."""

    job: JobStatus
    risk: Risk
    load: LoadFact | None
    peak_q90_per_s: float | None
    next_step: StepFact | None
    saving: PlanSaving | None
    goal: LatenessGoal
    plan: Sequence[PlanRow] = ()

    @property
    def name(self) -> str:
        """``cluster/job``."""
        return f"{self.job.cluster}/{self.job.job}"


@dataclass(frozen=True, slots=True)
class FleetPage:
    """All that the page shows."""

    cards: tuple[HealthCard, ...]
    lines: tuple[JobRow, ...]
    matching: int
    jobs: int
    pages: int
    faults: tuple[HealthFact, ...]
    red: int
    rescales: tuple[DecisionFact, ...]
    holds: tuple[HoldFact, ...]
    clusters: tuple[str, ...]
    saving: PlanSaving | None
    price: Price | None
    warnings: tuple[str, ...]


def form_view(look: LakeSnapshot, query: Query, rows: int = ROWS) -> FleetPage:
    """Return the view that an address asks for, with so many rows on a page."""
    facts = look.facts
    lines = [line_of(look, job) for job in facts.jobs if not job.has_ended]
    chosen = sorted(filter(lambda line: _matches(line, query), lines), key=lambda line: _order(line, query.sort))
    pages = max(-(-len(chosen) // rows), 1)
    first = (min(max(query.page, 1), pages) - 1) * rows
    return FleetPage(
        cards=form_cards(facts),
        lines=tuple(chosen[first : first + rows]),
        matching=len(chosen),
        jobs=len(lines),
        pages=pages,
        red=sum(line.risk.level == "bad" for line in lines),
        faults=tuple(one for one in facts.health if one.needs_person and "/" in one.scope),
        rescales=_last_rescales(facts),
        holds=tuple(one for one in facts.holds if "/" not in one.scope),
        clusters=tuple(one.cluster for one in facts.clusters),
        saving=sum_savings([line.saving for line in lines if line.saving is not None]),
        price=price_of(look.settings),
        warnings=tuple(sorted({row.warning for rows_ in look.plans.values() for row in rows_ if row.warning})[:5]),
    )


def form_cards(facts: FleetStatus) -> tuple[HealthCard, ...]:
    """Return the cards, in their order."""
    result = []
    for name, faults in CARDS:
        kinds = set(faults)
        mine = [one for one in facts.health if one.name in kinds]
        needs = [one for one in mine if one.needs_person]
        shown = needs or [one for one in mine if one.name == faults[0]]
        result.append(HealthCard(name, len(needs), tuple(_group(shown))))
    return tuple(result)


def _group(facts: Iterable[HealthFact]) -> list[FaultSummary]:
    scopes: dict[tuple[str, str, bool], list[str]] = {}
    for one in facts:
        scopes.setdefault((one.detail, one.remedy, one.needs_person), []).append(one.scope)
    return [FaultSummary(tuple(listed), *key) for key, listed in scopes.items()]


def line_of(look: LakeSnapshot, job: JobStatus) -> JobRow:
    """Return a job's line."""
    key, now_s = (job.cluster, job.job), look.facts.at_s
    plan, load = look.plans.get(key, ()), look.loads.get(key)
    goal = LatenessGoal.of(look.settings.planner.for_job(*key).costs)
    return JobRow(
        job=job,
        risk=judge_risk(job, find_day_late(plan), load, goal),
        load=load,
        peak_q90_per_s=find_peak(plan, now_s),
        next_step=next((step for step in job.steps if (step.apply_at_s or 0.0) >= now_s), None),
        saving=saving_of(job, now_s, look.days.get(key, ()), look.settings.cluster(job.cluster).taskmanager_slots),
        goal=goal,
        plan=plan,
    )


def _matches(line: JobRow, query: Query) -> bool:
    job = line.job
    words = query.q.lower().split()
    shown = {
        "": True,
        "needs": bool(job.waiting) or any(one.kind == "change" for one in job.holds) or line.risk.order[0] >= 2,
        "risk": line.risk.level == "bad",
        "held": bool(job.holds),
        "steps": line.next_step is not None,
    }
    return (
        all(word in line.name.lower() for word in words)
        and query.cluster in {"", job.cluster}
        and query.mode in {"", job.mode}
        and shown.get(query.show, True)
    )


def _order(line: JobRow, sort: str) -> tuple[float | str, ...]:
    load = line.load.load_per_s if line.load is not None else None
    keys: dict[str, tuple[float | str, ...]] = {
        "name": (),
        "load": (-(load or 0.0),),
        "slots": (-(line.job.slots_now or 0),),
        "next": (line.next_step.apply_at_s or 0.0,) if line.next_step else (float("inf"),),
        "saved": (-(line.saving.slot_hours if line.saving else 0.0),),
    }
    return (*keys.get(sort, (-line.risk.order[0], -line.risk.order[1])), line.name)


def _last_rescales(facts: FleetStatus, most: int = 10) -> tuple[DecisionFact, ...]:
    sent: Iterable[DecisionFact] = (job.last_rescale for job in facts.jobs if job.last_rescale is not None)
    lately: Sequence[DecisionFact] = [one for one in sent if one.at_s > facts.at_s - DAY_S]
    return tuple(sorted(lately, key=lambda one: -one.at_s)[:most])
