"""tidewise_approve: what is asked, how it is shown, and what becomes of the answer."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from include.control.approvals import ASKED_FOLDER, ApprovalStore, WaitingStep, answer_step
from include.orchestration.waiting_steps import find_waiting
from include.settings import Settings, check_settings

pytestmark = pytest.mark.airflow

AT = datetime(2026, 11, 20, 18, tzinfo=UTC)
NOW_S = AT.timestamp() + 60
STEP = WaitingStep("live", "orders", "step-1", AT, "load rises to 900/s", {"source": 2}, {"source": 4})
ROW = {
    **{"at": AT, "lease_number": 1, "entry": 1, "cluster": "live", "job": "orders", "reason": "needs_approval"},
    **{"step_id": "step-1", "detail": "load rises to 900/s"},
    **{"parallelism_from": [("source", 2)], "parallelism_to": [("source", 4)]},
}

ANSWER = """
import datetime, json, sys, time
from include.orchestration.approval_operator import StepApprovalOperator
from include.control.approvals import ApprovalStore
step, event = json.loads(sys.argv[1]), json.loads(sys.argv[2])
operator = StepApprovalOperator(task_id="ask", **step)
operator.execute_complete({}, event | {"responded_at": datetime.datetime.now()})
(found,) = ApprovalStore(sys.argv[3]).read(time.time())
print(json.dumps([found.is_approved, found.by, found.parallelism_to, round((found.until_s - found.at_s) / 3600)]))
"""


@pytest.mark.parametrize(
    ("chosen", "user", "told"),
    [
        ("Approve", {"id": "1", "name": "ada"}, [True, "ada", {"source": 4}, 3]),
        ("Deny", {"id": "1", "name": "ada"}, [False, "ada", {"source": 4}, 3]),
        ("Deny", None, [False, "nobody in time", {"source": 4}, 3]),
    ],
)
def test_an_answer_in_airflow_is_what_the_controller_reads(run_python, tmp_path, chosen, user, told):
    from include.orchestration.approval_operator import format_question

    event = {"chosen_options": [chosen], "params_input": {}, "responded_by_user": user}
    question, lake = json.dumps(format_question(STEP)), str(tmp_path)
    variables = {"TIDEWISE__PATHS__LAKE": lake, "TIDEWISE__LIMITS__APPROVAL_EXPIRES_H": "3"}
    assert json.loads(run_python(ANSWER, question, json.dumps(event), lake, **variables).splitlines()[-1]) == told


def test_a_step_that_was_answered_elsewhere_is_not_denied_when_time_runs_out(tmp_path):
    from include.orchestration.approval_operator import write_answer

    settings = check_settings({"paths": {"lake": str(tmp_path)}})
    store = ApprovalStore(str(tmp_path))
    store.write(answer_step(STEP, True, "ada", NOW_S, NOW_S + 3600))
    write_answer(settings, STEP, False, "", NOW_S + 60)
    assert [(one.is_approved, one.by) for one in store.read(NOW_S + 61)] == [(True, "ada")]
    write_answer(settings, STEP, False, "bob", NOW_S + 62)
    reported = sorted((one.is_approved, one.by) for one in store.read(NOW_S + 63))
    assert reported == [(False, "bob"), (True, "ada")]  # a no stands beside a yes


def test_who_may_not_answer_steps_writes_no_answer_in_airflow_either(tmp_path):
    from include.orchestration.approval_operator import write_answer

    settings = check_settings({"paths": {"lake": str(tmp_path)}, "roles": {"approve": ["ada"]}})
    store = ApprovalStore(str(tmp_path))
    for is_approved in (True, False):
        with pytest.raises(PermissionError, match=r"bob may not answer steps: roles\.approve does not name them"):
            write_answer(settings, STEP, is_approved, "bob", NOW_S)
    assert store.read(NOW_S) == []
    write_answer(settings, STEP, False, "", NOW_S)
    write_answer(settings, STEP, True, "ada", NOW_S)
    assert len(store.read(NOW_S)) == 2


def test_what_waits_is_the_last_word_on_a_job_and_only_for_a_time(tmp_path):
    settings = Settings()
    later, other = ROW | {"entry": 2, "reason": "as_desired"}, ROW | {"job": "rides", "step_id": "step-2"}
    result = find_waiting([ROW, other], settings, NOW_S)
    assert result[0] == STEP
    assert [(one.job, one.step_id) for one in result] == [("orders", "step-1"), ("rides", "step-2")]
    assert [one.job for one in find_waiting([later, ROW, other], settings, NOW_S)] == ["rides"]
    assert find_waiting([ROW], settings, NOW_S + 12 * 3600) == []
    asked = ApprovalStore(str(tmp_path), ASKED_FOLDER)
    asked.write(answer_step(STEP, False, "airflow", NOW_S, NOW_S + 3600))
    assert find_waiting([ROW], settings, NOW_S, asked.read(NOW_S)) == []
    assert find_waiting([ROW], settings, NOW_S + 3601, asked.read(NOW_S + 3601)) == [STEP]
    assert "source 2 -> 4. load rises" in STEP.describe()


def test_a_step_that_waits_again_after_an_answer_is_shown_again():
    """Its yes has had its request, or was to something else."""
    reported = answer_step(STEP, True, "ada", NOW_S, NOW_S + 3600)
    assert find_waiting([ROW], Settings(), NOW_S, [reported]) == []
    again = ROW | {"at": datetime.fromtimestamp(NOW_S + 600, UTC), "entry": 5}
    (result,) = find_waiting([ROW, again], Settings(), NOW_S + 660, [reported])
    assert result.step_id == "step-1"


def test_a_strange_name_is_shown_as_it_is(dags):
    from include.orchestration.approval_operator import format_question, read_step

    name = "{{ 1 + 1 }} `x` ![a](http://b) {% raw %}"
    step = WaitingStep("live", name, "s", AT, "because\n# of it", {name: 1}, {name: 2})
    shown = format_question(step)
    assert read_step(shown["step"]) == step
    rendered = dags["tidewise_approve"].get_template_env().from_string(shown["subject"] + shown["body"]).render()
    assert "{ { 1 + 1 }} 'x' ![a](http://b) { % raw %}: 1 -> 2" in rendered
    assert "    because # of it" in rendered
    assert all(line.startswith("    ") for line in shown["body"].splitlines() if "http" in line)


def test_somebody_is_asked_only_where_a_job_is_in_mode_approve(run_python):
    code = """
import dags.tidewise_approve as file
dag = file.tidewise_approve()
print(type(dag.timetable).__name__)
"""
    assert run_python(code).splitlines()[-1] == "NullTimetable"
    assert run_python(code, TIDEWISE__LIMITS__MODE="approve").splitlines()[-1] == "CronTriggerTimetable"
