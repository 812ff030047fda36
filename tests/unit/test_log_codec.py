"""Every decision can be made again from its row of the control log, whatever it was made from."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from control_entries import FOUR, NOW_S, cases, entry_for, plain_case
from examples import TIMES
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.log.control_log import LogEntry, Provenance
from controller.log.log_codec import action_of, case_of, entry_of, history_of, row_of, unique_names
from include.arrow_rows import arrow_rows
from include.tables import CONTROL_LOG
from models.control.case import Case, Verb
from models.control.limits import Limits
from models.control.reconcile import reconcile
from models.control.state import JobHistory, Mode, ObservedJob
from models.policies.memory import load

STAMP = (3, 7, "0.1.0+abc")
PROVENANCE = Provenance({"a": "Source: orders", "b": "enrich"}, NOW_S - 600, "m-1")


def stored(entry: LogEntry) -> dict[str, object]:
    """Return an entry's row as Arrow keeps it."""
    (row,) = arrow_rows(CONTROL_LOG, [row_of(entry, *STAMP)]).to_pylist()
    return row


@given(case=cases(), answer=st.sampled_from(["", "accepted", "refused: no"]))
@settings(max_examples=50 * TIMES, deadline=None)
def test_every_decision_can_be_made_again_from_its_row(case, answer) -> None:
    entry = entry_for(case, answer=answer)
    row = stored(entry)
    assert case_of(row) == case
    assert reconcile(case_of(row)) == action_of(row) == entry.action
    assert history_of(row) == entry.history
    if not answer:
        assert entry_of(row) == entry


def test_a_row_of_the_release_before_is_read_and_decides_as_it_did() -> None:
    """It lacks what is asked before a request, guards and blocks with a name: unknown, and no permission to send."""
    row = stored(entry_for(plain_case()))
    new = {"observed": ("autoscaler_unknown", "readiness", "failures"), "limits": ("guards", "lifted_blocks")}
    new["request"] = ("failures_before", "failed_until_s", "wait_detail", "forced_at_s")
    for column, names in new.items():
        reported = json.loads(str(row[column]))
        row[column] = json.dumps({key: value for key, value in reported.items() if key not in names})
    assert reconcile(case_of(row)) == action_of(row)
    assert case_of(row).observed.readiness is None
    assert action_of(row).request.failures_before is None
    assert entry_of(row) == entry_for(plain_case())


def test_infinite_limits_survive_and_so_does_not_a_number() -> None:
    limits = Limits(rescales_per_hour=math.inf, cooldown_s=math.nan, step_up_max_share=-math.inf)
    result = case_of(stored(entry_for(plain_case(limits=limits)))).limits
    assert result.rescales_per_hour == math.inf
    assert result.step_up_max_share == -math.inf
    assert math.isnan(result.cooldown_s)


def test_a_row_says_what_a_person_asks_for() -> None:
    row = stored(entry_for(plain_case(), provenance=PROVENANCE))
    assert (row["cluster"], row["job"], row["job_id"]) == ("live", "orders", "j")
    assert (row["verb"], row["reason"], row["detail"], row["mode"]) == ("rescale", "plan", "load rises", "auto")
    assert (row["origin"], row["step_id"], row["is_dry_run"], row["answer"]) == ("plan", "step-1", False, None)
    assert dict(row["parallelism_from"]) == {"Source: orders": 2, "enrich": 2}
    assert dict(row["parallelism_to"]) == {"Source: orders": 4, "enrich": 4}
    assert (row["slots_from"], row["slots_to"]) == (2, 4)
    assert (row["lease_number"], row["entry"], row["model_version"]) == (3, 7, "m-1")
    assert row["at"].timestamp() == NOW_S
    assert row["plan_as_of"].timestamp() == NOW_S - 600
    assert entry_of(row).provenance == PROVENANCE


def test_an_answer_has_its_own_time_and_the_decision_its_own() -> None:
    row = stored(entry_for(plain_case(), answer="accepted"))
    assert (row["at"].timestamp(), row["decided_at_s"]) == (NOW_S + 1.5, NOW_S)
    assert entry_of(row).answered_at_s == NOW_S + 1.5


def test_a_decision_on_a_request_in_flight_is_about_its_step_not_the_next_one() -> None:
    sent = entry_for(plain_case())
    runs = ObservedJob("j", "RUNNING", FOUR, FOUR, free_slots=8)
    confirmed = entry_for(plain_case(NOW_S + 60, "step-2", observed=runs, history=sent.history))
    assert confirmed.action.verb is Verb.CONFIRM
    assert stored(confirmed)["step_id"] == "step-1"


def test_a_pin_is_the_origin_and_the_step() -> None:
    held = Limits(mode=Mode.AUTO, pin=FOUR, is_held=True)
    row = stored(entry_for(plain_case(desired=None, limits=held)))
    assert (row["origin"], row["step_id"], dict(row["parallelism_to"])) == ("pin", "pin", FOUR)


def test_vertices_of_one_name_stay_apart() -> None:
    assert unique_names({"v1": "map", "v2": "map", "v3": "sink"}) == {"v1": "map (v1)", "v2": "map (v2)", "v3": "sink"}
    row = stored(entry_for(plain_case(), provenance=Provenance({"a": "map", "b": "map"})))
    assert dict(row["parallelism_from"]) == {"map (a)": 2, "map (b)": 2}


def test_a_job_name_with_slashes_and_half_a_surrogate_is_kept() -> None:
    row = stored(entry_for(plain_case(), job="live/a/b <script> \ud83d"))
    assert (row["cluster"], row["job"]) == ("live", "a/b <script> ?")
    with pytest.raises(ValueError, match="is not cluster/job"):
        row_of(entry_for(plain_case(), job="orders"), *STAMP)


def test_an_unknown_job_has_a_row_without_a_job_id() -> None:
    gone = ObservedJob(None, "", {}, None)
    row = stored(entry_for(plain_case(observed=gone)))
    assert (row["job_id"], row["reason"], row["slots_from"]) == (None, "unknown_job", 0)
    assert dict(row["parallelism_to"]) == FOUR
    assert dict(row["parallelism_from"]) == {}


def test_a_history_of_the_release_before_knows_no_late_request_no_bound_and_no_answer() -> None:
    """Its given-up targets had no end: they are forgotten, so that the same numbers are somebody else's."""
    request = '{"step_id":"s","job_id":"j","target":{"a":4},"before":{"a":2},"running_before":{"a":2},'
    request += '"sent_at_s":1.0,"deadline_s":181.0,"settle_s":300.0,"is_rollback":false}'
    text = f'{{"job_id":"j","known_requested":{{"a":2}},"late_targets":[{{"a":8}}],"in_flight":{request}}}'
    old = load(JobHistory, text)
    assert (old.late_requests, old.known_lower, old.used_approvals) == ((), None, None)
    assert old.in_flight is not None
    assert (old.in_flight.arrived_at_s, old.in_flight.approvals, old.in_flight.running_since_s) == (None, (), None)
    observed = load(ObservedJob, '{"job_id":"j","state":"RUNNING","running":{"a":2},"requested":{"a":8}}')
    assert (observed.lower_bounds, observed.running_since_s) == (None, None)
    known = replace(old, in_flight=None)
    assert reconcile(Case(9.0, None, observed, known, Limits())).reason == "foreign_change"
    limits = load(Limits, "{}")
    assert (limits.approval_band, limits.left_alone, limits.operator_min) == (0.0, (), {})
