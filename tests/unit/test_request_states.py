"""What the states of a request took is measured when it runs, kept with the job, and learnt from."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from models.control.case import Case, OutcomeCheck, Verb
from models.control.history import advance_history
from models.control.limits import Limits
from models.control.outcome import Measurements, find_caught_up_s
from models.control.reconcile import reconcile
from models.control.request_states import describe_states
from models.control.request_times import RequestTimes
from models.control.state import JobHistory, Mode, ObservedJob, Request
from models.recovery.slots_wait import learn_slots_wait

NOW_S = 1_000_000.0
AUTO = Limits(mode=Mode.AUTO)
TWO, FOUR = {"a": 2}, {"a": 4}
SENT = Request("step", "j", FOUR, TWO, TWO, NOW_S - 400, NOW_S + 60, running_since_s=7.0, arrived_at_s=NOW_S - 397)
# The cluster's clock is 20 s behind, and the job stopped 60 s ago.
RUNS = ObservedJob("j", "RUNNING", FOUR, FOUR, running_since_s=NOW_S - 80)
CONFIRMED = RequestTimes(accepted_s=3.0, waited_s=337.0, restored_s=60.0)


def confirm(request: Request = SENT, observed: ObservedJob = RUNS, ahead_s: float | None = 20.0) -> JobHistory:
    history = JobHistory("j", in_flight=request, known_requested=TWO, ahead_s=ahead_s)
    case = Case(NOW_S, None, observed, history, AUTO)
    action = reconcile(case)
    after = advance_history(case, action)
    assert (action.verb, action.detail) == (Verb.CONFIRM, describe_states(after.times_of_requests[-1]))
    return after


@pytest.mark.parametrize(
    ("request_", "observed", "ahead_s", "times"),
    [
        (SENT, RUNS, 20.0, CONFIRMED),
        # 200 s of the wait were for slots
        (
            replace(SENT, slots_came_at_s=NOW_S - 197),
            RUNS,
            20.0,
            RequestTimes(accepted_s=3.0, slots_s=200.0, waited_s=137.0, restored_s=60.0),
        ),
        (replace(SENT, slots_came_at_s=math.inf), RUNS, 20.0, RequestTimes(3.0, 397.0, 0.0, 0.0)),
        (replace(SENT, arrived_at_s=None), RUNS, 20.0, RequestTimes(None, None, 340.0, 60.0)),
        (SENT, RUNS, None, RequestTimes(3.0)),  # no clock of the cluster: when the job stopped is not known
        (SENT, replace(RUNS, running_since_s=None), 20.0, RequestTimes(3.0)),
        (SENT, replace(RUNS, running_since_s=7.0), 20.0, RequestTimes(3.0)),  # it did not stop
        (SENT, RUNS, 500.0, RequestTimes(3.0, None, 397.0, 0.0)),  # never after now
    ],
)
def test_each_state_has_its_time_where_it_is_known(
    request_: Request, observed: ObservedJob, ahead_s: float | None, times: RequestTimes
) -> None:
    assert confirm(request_, observed, ahead_s).times_of_requests == (times,)


def test_when_it_had_caught_up_is_noted_once() -> None:
    late, over = Measurements(NOW_S + 60, 1000.0, 900.0, 0.0, 61.0, 0), Measurements(NOW_S + 120, 1, 1, 0, 9.0, 0)
    assert (find_caught_up_s(None, 60.0), find_caught_up_s(late, 60.0)) == (None, None)
    history = confirm()
    for outcome_s in (None, find_caught_up_s(over, 60.0), NOW_S + 600):
        case = Case(NOW_S + 700, None, RUNS, history, AUTO, OutcomeCheck(caught_up_at_s=outcome_s))
        history = advance_history(case, reconcile(case))
    assert history.times_of_requests == (replace(CONFIRMED, caught_up_s=120.0),)
    assert describe_states(history.times_of_requests[0]).endswith("restored in 60 s, caught up after 120 s")


def test_it_is_noted_of_the_request_that_is_judged_and_of_no_other() -> None:
    outcome = OutcomeCheck(caught_up_at_s=NOW_S + 120)
    for history in (replace(confirm(), to_judge=None), replace(confirm(), times_of_requests=())):
        case = Case(NOW_S + 700, None, RUNS, history, AUTO, outcome)
        assert advance_history(case, reconcile(case)).times_of_requests == history.times_of_requests


def test_times_stay_with_a_job_that_is_deployed_anew() -> None:
    case = Case(NOW_S + 60, None, replace(RUNS, job_id="k"), confirm(), AUTO)
    action = reconcile(case)
    assert (action.reason, advance_history(case, action).times_of_requests) == ("new_job_id", (CONFIRMED,))


def test_a_wait_says_which_state_its_request_is_in() -> None:
    def told(request: Request, observed: ObservedJob) -> str:
        return reconcile(Case(NOW_S, None, observed, JobHistory("j", request, TWO), AUTO)).detail

    before = replace(RUNS, running=TWO, running_since_s=7.0)
    assert told(SENT, before) == "a request is in flight: the job runs on until Flink begins"
    assert told(SENT, replace(before, running_since_s=None)).endswith("the job runs on until Flink begins")
    for restoring in (replace(before, running={}), replace(RUNS, running={}), replace(RUNS, running={"a": 3})):
        assert told(SENT, restoring) == "a request is in flight: the job restores its state"


def test_a_wait_for_slots_is_what_is_assumed_until_requests_tell() -> None:
    assumed = learn_slots_wait([], 600.0)
    assert assumed.most_s == 600.0
    assert 100 < assumed.median_s < 300
    requests = [RequestTimes(1.0, slots_s, 30.0, 8.0) for slots_s in (None, *[90.0] * 10, *[400.0] * 10)]
    learnt = learn_slots_wait(requests, 600.0)
    assert learnt.most_s == 400.0  # warm and cold nodes: two modes, and no shape between
    assert learn_slots_wait([RequestTimes(1.0, 90.0)] * 50, 600.0).most_s == 90.0
