"""An explanation as sentences, the same for ``tidewise why`` and the page."""

from __future__ import annotations

from collections.abc import Sequence

from fleet.explanation import Explanation, OperatorMetrics
from fleet.facts import DecisionFact, OutcomeFact, StepFact
from fleet.health import describe_age
from fleet.shown import show_rate, show_time
from include.short_names import shorten_names
from models.control.log_lines import describe_change
from models.control.reasons import Reason
from models.scheduling.figures import format_count, format_late


def describe_explanation(result: Explanation, now_s: float) -> list[str]:
    """Return the explanation as a person reads it."""
    one = result.decision
    lines = [
        f"{one.cluster}/{one.job}, {show_time(one.at_s, now_s)}: {name_decision(one)}",
        f"  because  {one.detail or 'no more is known'}",
        f"  rule     {one.reason}: {meaning_of(one.reason)}",
        f"  mode     {one.mode}{' (dry run: nothing was sent)' if one.is_dry_run else ''}",
    ]
    if one.wish_changed:
        lines.append(f"  wants    {one.wish_changed}")
    free = "unknown" if result.free_slots is None else str(result.free_slots)
    lines += [f"  ran      {format_count(one.slots_from, 'slot')}, {one.state or 'state unknown'}; free: {free}"]
    lines += ["measured, in the last windows before:", *_describe_figures(result.measured)]
    lines += describe_plan(result.plan, one, now_s)
    lines += describe_request(result, now_s)
    if result.after:
        lines += ["afterwards:"]
        lines += [f"  {show_time(each.at_s, now_s)} {describe_decision(each)}" for each in result.after]
    return lines


def describe_decision(one: DecisionFact) -> str:
    """Return a decision in a line, with why something else is wanted than before."""
    parts = [f"{one.verb.replace('_', ' ')}: {one.reason}", one.detail]
    return ", ".join(filter(None, [*parts, one.wish_changed and f"wants {one.wish_changed}"]))


def name_decision(one: DecisionFact) -> str:
    """Return verb, origin and change of a decision."""
    verb = {"rescale": "rescale", "roll_back": "a rescale was taken back"}.get(one.verb, one.verb)
    change = describe_change(one.parallelism_from, one.parallelism_to) if one.parallelism_to else ""
    slots = f", {one.slots_from} -> {format_count(one.slots_to, 'slot')} ({change})" if one.slots_to is not None else ""
    return f"{verb}{_BY.get(one.origin, '')}{slots}"


_BY = {
    "plan": " by plan",
    "reactive": " by an evaluation",
    "pin": " by a pin",
    "undo": " by a person",
    "schedule": " by a schedule",
}


def _describe_figures(figures: Sequence[OperatorMetrics]) -> list[str]:
    if not figures:
        return ["  nothing was ingested of that time"]
    short = shorten_names({one.operator for one in figures})
    lines = []
    for one in sorted(figures, key=lambda each: -(each.used_share or 0.0)):
        used = "" if one.used_share is None else f", {one.used_share:.0%} used"
        busy = "" if one.busy_share is None else f", busy {one.busy_share:.0%}"
        backlog = "" if not one.pending_records else f", backlog {one.pending_records:,.0f}"
        lag = "" if one.lag_s is None else f", {describe_age(one.lag_s)} behind"
        rates = f"{show_rate(one.rate_per_s)} of {show_rate(one.capacity_per_s)}"
        lines.append(
            f"  {short.get(one.operator, one.operator)} at {one.parallelism}: {rates}{used}{busy}{backlog}{lag}"
        )
    return lines


def describe_plan(plan: StepFact | None, decision: DecisionFact, now_s: float) -> list[str]:
    """Return what the plan expected of the step."""
    if plan is None:
        missing = "the plan of this step is gone" if decision.origin == "plan" else "this decision came from no plan"
        return [f"plan: {missing}"]
    late = "" if plan.late_minutes is None else f"; {format_late(plan.late_minutes)} expected"
    band = f"{show_rate(plan.capacity_lower_per_s)} to {show_rate(plan.capacity_upper_per_s)}"
    recovery = "" if plan.recovery_s is None else f"; recovery {describe_age(plan.recovery_s)}"
    hours = plan.slot_hours_saved
    saved = "" if hours is None else f"; {'saves' if hours >= 0 else 'takes'} {abs(hours):.1f} slot-hours"
    reason = "as above" if plan.reason in decision.detail else plan.reason
    return [
        f"plan of {show_time(plan.plan_as_of_s, now_s)} ({plan.policy}): {reason}",
        f"  load q50 {show_rate(plan.load_q50_per_s)}, q90 {show_rate(plan.load_q90_per_s)} against capacity "
        f"{show_rate(plan.capacity_per_s)} ({band}){late}{recovery}{saved}",
        *(f"  {text}" for text in describe_neighbours(plan)),
    ]


def describe_neighbours(step: StepFact) -> list[str]:
    """Return what the next larger and the next smaller size that were priced would have taken in its place."""
    return [
        f"{name}: {format_count(one.slots, 'slot')}, {abs(one.slot_hours_more):.1f} slot-hours "
        f"{'more' if one.slot_hours_more >= 0 else 'fewer'}, {format_late(one.late_minutes)} expected"
        for name, one in (("safer", step.safer), ("cheaper", step.cheaper))
        if one is not None
    ]


def describe_request(result: Explanation, now_s: float) -> list[str]:
    """Return when the request left, what Flink said, and what came of it."""
    if result.sent_at_s is None:
        why = f": {result.answer}" if result.answer else ""
        return [f"request: none was sent{why}"]
    lines = [f"request: sent at {show_time(result.sent_at_s, now_s)}; Flink: {result.answer or 'no answer is known'}"]
    if result.confirmed_at_s is None:
        lines.append("  not seen to run within three hours")
    else:
        states = f": {result.states}" if result.states else ""
        lines.append(f"  ran as requested after {describe_age(result.confirmed_at_s - result.sent_at_s)}{states}")
    return [*lines, *describe_outcome(result.outcome)]


def describe_outcome(outcome: OutcomeFact | None) -> list[str]:
    """Return how a rescale was judged."""
    if outcome is None:
        return ["outcome: not judged"]
    verdict = {True: "worse than before", False: "not worse than before", None: "not told apart"}[outcome.is_worse]
    back = "; it was taken back" if outcome.rolled_back else ""
    through = f"throughput {show_rate(outcome.throughput_before_per_s)} -> {show_rate(outcome.throughput_after_per_s)}"
    lags = [None if lag is None else describe_age(lag) for lag in (outcome.lag_before_s, outcome.lag_after_s)]
    lag = "" if None in lags else f", behind {lags[0]} -> {lags[1]}"
    return [f"outcome: {verdict}{back}: {outcome.detail or through}", f"  {through}{lag}"]


def meaning_of(reason: str) -> str:
    """Return what a named rule means."""
    try:
        return Reason(reason).meaning
    except ValueError:  # of another release
        return "a reason of another release"
