"""Why a step is planned although the load may exceed its capacity."""

from __future__ import annotations

from fleet.facts import StepFact
from fleet.shown import show_rate
from include.settings import Settings
from include.tables.plan_row import PlanRow
from models.scheduling.figures import format_late

_CLIPPED = "clipped to the maximum"


def slot_price_of(settings: Settings, cluster: str, job: str) -> float | None:
    """Return how many late minutes cost as much as a slot for an hour; None where lateness costs nothing.

    A minute with all slots of a job costs ``resource_weight`` and a late one ``late_weight``.
    """
    costs, of_job = settings.planner.costs, settings.job_limits(cluster, job)
    most = min(one for one in (of_job.slots_max, settings.cluster(cluster).slots_max, settings.limits.slots_max) if one)
    if costs.late_weight <= 0:
        return None
    return 60 * costs.resource_weight / most / costs.late_weight


def describe_shortfall(step: StepFact, price: float | None) -> str:
    """Return why a step is planned whose capacity is below the 90% load; empty for any other."""
    if step.capacity_per_s is None or step.load_q90_per_s is None or step.capacity_per_s >= step.load_q90_per_s:
        return ""
    below = f"Below the 90% load: {show_rate(step.capacity_per_s)} against {show_rate(step.load_q90_per_s)}"
    if show_rate(step.capacity_per_s) == show_rate(step.load_q90_per_s):
        return ""
    if _CLIPPED in step.reason:
        return f"{below}, because no more is allowed or would help."
    if price is None or step.effective_at_s is None or step.valid_until_s is None:
        return f"{below}: more slots would cost more than the late minutes that they prevent."
    hours = (step.valid_until_s - step.effective_at_s) / 3600
    worth = hours * price
    return (
        f"{below}, on purpose: one slot more for these {hours:.1f} h costs as much as {worth:.1f} late minutes, "
        "and planning expects to prevent fewer."
    )


def describe_standing(row: PlanRow) -> str:
    """Return what is said of a job that stays as it is below its 90% load; empty for any other."""
    capacity, load = row.expected_capacity_per_s, row.expected_load_q90_per_s
    if row.status != "hold" or capacity is None or load is None or capacity >= load:
        return ""
    late = "" if row.expected_late_minutes is None else f", {format_late(row.expected_late_minutes)} expected"
    return (
        f"What runs sustains {show_rate(capacity)}, and the 90% load is {show_rate(load)}{late}. Nothing larger is "
        "planned for the reason above; between plans the controller follows the load that is measured."
    )


def describe_slot_price(price: float | None) -> str:
    """Return what planning weighs, in one clause."""
    if price is None:
        return "lateness costs nothing (planner.costs.late_weight = 0)"
    return f"a slot for an hour costs as much as {price:.2g} late minutes"
