"""The guard: which due steps may go to Flink, and the named reasons for which one may not.

Pure rules over what is known of the job at the time of applying; the same rules judge a dry run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from include.settings import Settings

Mode = Literal["dry-run", "auto"]


class Refusal(StrEnum):
    """Why a due step was not applied; final for that step, the next plan may ask again."""

    SUPERSEDED = "superseded"  # a later step of the plan is due as well, or the reactive controller replaced it
    EXPIRED = "expired"
    STALE_PLAN = "stale_plan"
    STALE_METRICS = "stale_metrics"
    NO_REST_URL = "no_rest_url"
    UNKNOWN_JOB = "unknown_job"
    NOT_RUNNING = "not_running"
    UNKNOWN_OPERATOR = "unknown_operator"
    PARALLELISM_CHANGED = "parallelism_changed"
    EXCEEDS_SLOTS = "exceeds_slots"
    COOLDOWN = "cooldown"
    LOAD_OUTSIDE_BAND = "load_outside_band"


@dataclass(frozen=True, slots=True)
class DueStep:
    """A step whose time has come: the fields of its row in ``gold.plans``, or in ``gold.looks`` if it is ``of_net``."""

    step_id: str
    plan_as_of: datetime
    cluster: str
    job: str
    job_id: str
    apply_at: datetime
    valid_until: datetime
    parallelism_from: Mapping[str, int]
    parallelism_to: Mapping[str, int]
    expected_recovery_s: float | None
    superseded: bool = False
    of_net: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known of the job when a step is judged.

    Attributes:
        now: the time of judging.
        mode: of the cluster.
        has_rest_url: whether the cluster can be reached at all.
        running: operator -> running parallelism; None when the job is not known, empty when it is not RUNNING.  Of a
            job that restarts: what it is to come back with.
        observed_until: end of its last window of metrics.
        load_per_s: what its sources should emit now; None when it was not measured.
        forecast_q50_per_s, forecast_q90_per_s: what the plan's forecast says for now.
        last_rescale_at: when its parallelism last changed or was asked to.
        slots_max: most slots that the job may have.
        free_slots: of the cluster; None when the cluster was not asked.
        restarting: whether the job failed and is being brought back.
    """

    now: datetime
    mode: Mode
    has_rest_url: bool
    running: Mapping[str, int] | None
    observed_until: datetime | None
    load_per_s: float | None
    forecast_q50_per_s: float | None
    forecast_q90_per_s: float | None
    last_rescale_at: datetime | None
    slots_max: int
    free_slots: int | None = None
    restarting: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """A step, what surrounds it and the settings: what every rule judges."""

    step: DueStep
    around: Surroundings
    settings: Settings


Rule = Callable[[Case], str | None]


def mode_of(settings: Settings, cluster: str) -> Mode:
    """Return how steps of a cluster are applied: sent, or recorded only."""
    return "auto" if settings.mode_of(cluster) == "auto" else "dry-run"


def added_slots(step: DueStep, around: Surroundings) -> int:
    """Return the slots that the step takes beyond those that the job has; negative when it gives some back."""
    return max(step.parallelism_to.values()) - max((around.running or step.parallelism_from).values())


def guard(step: DueStep, around: Surroundings, settings: Settings) -> tuple[Refusal, str] | None:
    """Return the first rule that refuses the step and what is behind it; None when it may be applied."""
    case = Case(step, around, settings)
    for refusal, rule in RULES.items():
        detail = rule(case)
        if detail is not None:
            return refusal, detail
    return None


def _superseded(case: Case) -> str | None:
    why = "a later step of the same plan is due, or the reactive controller has replaced this one"
    return why if case.step.superseded else None


def _expired(case: Case) -> str | None:
    late_s = (case.around.now - case.step.valid_until).total_seconds()
    return f"it was valid until {late_s:.0f} s ago" if late_s > 0 else None


def _stale_plan(case: Case) -> str | None:
    age_h = (case.around.now - case.step.plan_as_of) / timedelta(hours=1)
    most_h = case.settings.apply.max_plan_age_h
    return f"the plan is {age_h:.1f} h old, more than apply.max_plan_age_h = {most_h:g}" if age_h > most_h else None


def _stale_metrics(case: Case) -> str | None:
    if case.around.observed_until is None:
        return "the job was not observed within two days"
    age_h = (case.around.now - case.around.observed_until) / timedelta(hours=1)
    most_h = case.settings.planner.max_input_age_h
    return f"metrics are {age_h:.1f} h old, more than planner.max_input_age_h = {most_h:g}" if age_h > most_h else None


def _no_rest_url(case: Case) -> str | None:
    wanted = case.around.mode == "auto" and not case.around.has_rest_url
    return f"mode auto needs clusters.{case.step.cluster}.rest_url" if wanted else None


def _unknown_job(case: Case) -> str | None:
    return f"the cluster has no job {case.step.job_id}" if case.around.running is None else None


def _not_running(case: Case) -> str | None:
    """Refuse, unless the reactive controller enlarges a job that restarts: it comes back so, without another stop.

    A plan's step was made for a job that runs.
    """
    if case.around.running == {}:
        return "the job or one of its vertices is not RUNNING"
    enlarges = case.step.of_net and added_slots(case.step, case.around) > 0
    if case.around.restarting and not enlarges:
        return "the job restarts; until it runs, only the reactive controller may enlarge it"
    return None


def _unknown_operator(case: Case) -> str | None:
    different = sorted(case.step.parallelism_to.keys() ^ (case.around.running or {}).keys())
    return f"the job's operators are not those of the plan: {different}" if different else None


def _parallelism_changed(case: Case) -> str | None:
    running = case.around.running or {}
    changed = [
        f"{name} runs at {running[name]} instead of {before}"
        for name, before in sorted(case.step.parallelism_from.items())
        if running.get(name, before) != before
    ]
    return f"changed since the plan was made: {', '.join(changed)}" if changed else None


def _exceeds_slots(case: Case) -> str | None:
    slots = max(case.step.parallelism_to.values())
    if slots > case.around.slots_max:
        return f"{slots} slots, more than clusters.{case.step.cluster}.slots_max = {case.around.slots_max}"
    added = added_slots(case.step, case.around)
    if case.around.free_slots is not None and added > max(case.around.free_slots, 0):
        return f"{added} more slots wanted, {case.around.free_slots} free"
    return None


def _cooldown(case: Case) -> str | None:
    if case.around.last_rescale_at is None:
        return None
    since_s, least_s = (case.around.now - case.around.last_rescale_at).total_seconds(), case.settings.limits.cooldown_s
    return f"last rescale {since_s:.0f} s ago, less than limits.cooldown_s = {least_s:g}" if since_s < least_s else None


def _load_outside_band(case: Case) -> str | None:
    load, low, high = case.around.load_per_s, case.around.forecast_q50_per_s, case.around.forecast_q90_per_s
    if load is None or low is None or high is None:
        return None
    band = case.settings.apply.load_band
    if low * (1 - band) <= load <= high * (1 + band):
        return None
    return f"load is {load:.0f}/s, the forecast for now q50 {low:.0f}/s, q90 {high:.0f}/s, band {band:g}"


RULES: dict[Refusal, Rule] = {
    Refusal.SUPERSEDED: _superseded,
    Refusal.EXPIRED: _expired,
    Refusal.STALE_PLAN: _stale_plan,
    Refusal.STALE_METRICS: _stale_metrics,
    Refusal.NO_REST_URL: _no_rest_url,
    Refusal.UNKNOWN_JOB: _unknown_job,
    Refusal.NOT_RUNNING: _not_running,
    Refusal.UNKNOWN_OPERATOR: _unknown_operator,
    Refusal.PARALLELISM_CHANGED: _parallelism_changed,
    Refusal.EXCEEDS_SLOTS: _exceeds_slots,
    Refusal.COOLDOWN: _cooldown,
    Refusal.LOAD_OUTSIDE_BAND: _load_outside_band,
}
