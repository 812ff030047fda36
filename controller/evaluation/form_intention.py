"""What is wanted of a job by vertex id, and what speaks against sending a plan's step now."""

from __future__ import annotations

import math

import numpy as np

from controller.view.job_view import ActiveTarget, EvaluationState, JobView
from controller.view.plan_rows import LoadBand
from include.domain.graph import JobGraph
from include.settings import Settings
from include.utc import HOUR_S
from models.control.reasons import Reason
from models.control.state import Intention, Origin
from models.policies.observations import Observations

LOAD_OVER_S = 600  # one window may be as short as 15 s: the load is the mean over at least this long


def form_intention(
    view: JobView, previous: EvaluationState, settings: Settings, now_s: float, band: LoadBand | None
) -> Intention | None:
    """Return what is wanted of a job by vertex id; None when it is to stay as it is or its vertices are not known.

    ``band`` is of the forecast behind the plan for now, all sources.
    """
    active = previous.standing
    if active is None or view.seen is None or now_s > active.valid_until_s:
        return None
    vertex_ids = view.seen.vertex_ids
    # An operator that the job does not have stays in under its name: the step is refused for it.
    wanted = {vertex_ids.get(name, name): count for name, count in active.wanted.items()}
    for name in view.seen.finished:
        wanted.pop(vertex_ids[name], None)
    wanted |= {vertex_ids[name]: count for name, count in view.seen.idle.items()}
    objection, detail = "", ""
    if active.origin is Origin.PLAN:
        objection, detail = _object_to_step(view, settings, now_s, None if active.has_band else band)
    if active.held_back and not objection:
        objection, detail = Reason.OUTSIDE_BAND, active.held_back
    return Intention(
        parallelism=wanted,
        origin=active.origin,
        step_id=active.step_id,
        reason=active.reason,
        valid_until_s=active.valid_until_s,
        settle_s=_settle_s(view, active),
        objection=objection,
        objection_detail=detail,
        falls_behind=active.falls_behind,
    )


def measure_load_per_s(observations: Observations | None, graph: JobGraph | None) -> float:
    """Return what the sources should emit, records/s: the mean over the last undisturbed windows, NaN when unknown."""
    if observations is None or graph is None or not len(observations):
        return math.nan
    end_s = int(observations.window_start_s[-1]) + observations.window_s
    recent = (observations.window_start_s + observations.window_s > end_s - LOAD_OVER_S) & ~observations.disturbed
    of_sources = observations.target_data_rate_per_s[recent][:, [graph.position(name) for name in graph.sources]]
    if not of_sources.size or np.isnan(of_sources).all(axis=0).any():
        return math.nan
    return float(np.nanmean(of_sources, axis=0).sum())


def _object_to_step(view: JobView, settings: Settings, now_s: float, band: LoadBand | None) -> tuple[str, str]:
    """Return why a plan's step must not be sent now, and what is behind it; empty texts when it may be."""
    plan = view.plan
    if plan is None:
        return Reason.STALE_PLAN, "the plan of this step is gone"
    age_h, most_h = (now_s - plan.as_of_s) / HOUR_S, settings.apply.max_plan_age_h
    if age_h > most_h:
        return Reason.STALE_PLAN, f"the plan is {age_h:.1f} h old, more than apply.max_plan_age_h = {most_h:g}"
    observed_s = max(_observed_until_s(view), plan.observations_until_s or 0)
    age_h, most_h = (now_s - observed_s) / HOUR_S, settings.planner.max_input_age_h
    if age_h > most_h:
        return Reason.STALE_METRICS, f"metrics are {age_h:.1f} h old, more than planner.max_input_age_h = {most_h:g}"
    graph = view.seen.graph if view.seen is not None else None
    load = measure_load_per_s(view.observations, graph or view.graph)
    if band is not None and math.isfinite(load):
        low, high, share = band.q50_per_s, band.q90_per_s, settings.apply.load_band
        if not low * (1 - share) <= load <= high * (1 + share):
            detail = f"load is {load:.0f}/s, the forecast for now q50 {low:.0f}/s, q90 {high:.0f}/s, band {share:g}"
            return Reason.LOAD_OUTSIDE_BAND, detail
    return "", ""


def _observed_until_s(view: JobView) -> float:
    if view.observations is None or not len(view.observations):
        return 0.0
    return float(view.observations.window_start_s[-1]) + view.observations.window_s


def _settle_s(view: JobView, standing: ActiveTarget) -> float:
    """Return how long the job catches up after the rescale: the plan's expectation, else that of the recovery model."""
    for step in view.plan.steps if view.plan is not None else ():
        if step.step_id == standing.step_id and step.expected_recovery_s is not None:
            return min(float(step.expected_recovery_s), HOUR_S)
    return float(view.recovery.downtime_rescale_s + 3 * view.recovery.downtime_rescale_sd_s)
