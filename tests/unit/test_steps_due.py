"""What plans send next: also what was due before, while it is valid and was not carried out."""

from __future__ import annotations

import json
from dataclasses import replace

from cli.plan import describe_plan
from fleet.explanation_text import describe_plan as describe_explained
from fleet.facts import DecisionFact, FleetStatus, JobStatus
from fleet.plain import to_json
from fleet.plans import list_steps, select_due
from include.tables.plan_row import PlanRow

NOON_S = 1_795_003_200.0
AT_S = NOON_S + 1200
ONE, FOUR = {"a": 1}, {"a": 4}
DUE, LATER = list_steps(
    [
        PlanRow(
            cluster="prod",
            job="q2",
            step_id=step_id,
            status="planned",
            as_of_s=NOON_S,
            apply_at_s=at_s,
            valid_until_s=AT_S + 3600,
            parallelism_from=ONE,
            parallelism_to=FOUR,
            slots_from=1,
            slots=4,
        )
        for step_id, at_s in (("due", NOON_S + 300), ("later", NOON_S + 1800))
    ]
)
LAST = DecisionFact(
    *("prod", "q2", NOON_S, "wait", "cooldown", "", "", "plan", "due", "auto", False, "RUNNING", 1, 4, ONE, FOUR)
)


def facts(**known: DecisionFact | None) -> FleetStatus:
    decided = {"last_decision": LAST, "last_rescale": None, **known}
    job = JobStatus(
        "prod", "q2", "auto", "RUNNING", 1, **decided, plan_status="planned", plan_reason="", plan_as_of_s=NOON_S
    )
    return FleetStatus(AT_S, jobs=(replace(job, steps=(DUE, LATER)),))


def test_a_step_whose_time_has_passed_is_due_since_then() -> None:
    steps = select_due(facts(), 6)
    assert steps == [DUE, LATER]
    first, second, stays = describe_plan(facts(), steps, 6)
    assert first.startswith("due since 12:05Z prod/q2: 1 -> 4 slots")
    assert second.startswith("12:30Z prod/q2: 1 -> 4 slots")
    assert stays.startswith("0 of 1 job stay")


def test_of_named_jobs_only_those_are_counted() -> None:
    two = replace(facts(), jobs=(*facts().jobs, replace(facts().jobs[0], job="q3")))
    assert describe_plan(two, [], 6)[-1].startswith("2 of 2 jobs stay")
    assert describe_plan(two, [], 6, ["prod/q3"])[-1].startswith("1 of 1 job stays")


def test_a_step_that_was_carried_out_is_not_due() -> None:
    runs = replace(LAST, reason="runs_as_requested", parallelism_from=FOUR)
    for known in ({"last_rescale": LAST}, {"last_decision": runs}):
        assert select_due(facts(**known), 6) == [LATER]
    assert select_due(facts(last_decision=None), 6) == [DUE, LATER]


def test_why_and_the_json_have_the_neighbours_of_a_step() -> None:
    safer = {"parallelism": {"a": 8}, "slots": 8, "slot_hours_more": 4.0, "late_minutes": 0.0}
    named = {f"safer_{name}": value for name, value in safer.items()}
    (step,) = list_steps([PlanRow(status="planned", slots=4, reason="load rises", **named)])
    assert describe_explained(step, LAST, NOON_S)[2:] == [
        "  safer: 8 slots, 4.0 slot-hours more, no late minute expected"
    ]
    (read,) = json.loads(to_json("plan", {"steps": [step]}))["steps"]
    assert (read["safer"], read["cheaper"]) == (safer, None)
    assert (DUE.safer, describe_explained(DUE, LAST, NOON_S)[2:]) == (None, [])
