"""The rescales that Flink keeps from 2.3 on: each is asked for once, after the job came to run again."""

import json

import pytest

from include.flink.poller import RestSource
from include.flink.raw_format import Endpoint
from include.flink.transport import Reply

JOB = "a" * 32
FIRST, SECOND, UNDER_WAY = (f"0000000{number}-0000-0000-0000-000000000000" for number in range(3))
HISTORY, DETAILS = f"/jobs/{JOB}/rescales/history", f"/jobs/{JOB}/rescales/details/"


class Replies:
    """Stands for client and transport of a cluster with one job without vertices."""

    def __init__(self, version="2.3.0"):
        self.version, self.running_ms, self.history, self.asked = version, 1, [], []
        self.transport = self

    def get(self, path):
        self.asked.append(path)
        job = {"state": "RUNNING", "start-time": 5, "vertices": [], "timestamps": {"RUNNING": self.running_ms}}
        bodies = {
            "/overview": {"flink-version": self.version},
            "/jobs/overview": {"jobs": [{"jid": JOB, "state": "RUNNING"}]},
            f"/jobs/{JOB}": job,
            HISTORY: self.history,
        }
        if path == HISTORY and self.history is None:
            return Reply(path, 404, '{"errors":["Rescale history is off"]}')
        return Reply(path, 200, json.dumps(bodies.get(path, {})))

    def told(self):
        poll = RestSource.poll(self.source)
        assert poll.faults == ()
        return [one.endpoint.removeprefix(DETAILS) for one in poll.records if one.kind == Endpoint.RESCALE]


@pytest.fixture
def replies() -> Replies:
    result = Replies()
    result.source = RestSource(result, "prod", lambda: 7200.0, sleep=lambda _: None)
    return result


def entry(rescale_id, state="COMPLETED"):
    return {"rescaleUuid": rescale_id, "terminalState": state}


def test_rescales_of_one_millisecond_are_told_apart(replies):
    replies.history = [entry(FIRST), entry(SECOND)]
    retained = [one.observed_at_ms for one in replies.source.poll().records if one.kind == Endpoint.RESCALE]
    assert retained == [7_200_000, 7_200_001]


def test_each_rescale_that_has_ended_is_kept_once(replies):
    replies.history = [entry(FIRST), entry(UNDER_WAY, None)]
    assert replies.told() == [FIRST]
    replies.history = [entry(FIRST), entry(SECOND, "IGNORED"), entry(UNDER_WAY, None)]
    assert replies.told() == [SECOND]
    assert replies.told() == []


def test_a_job_that_runs_on_is_not_asked_again(replies):
    for _ in range(5):
        replies.told()
    assert replies.asked.count(HISTORY) == 3
    replies.running_ms = 2
    replies.history = [entry(FIRST)]
    assert replies.told() == [FIRST]


@pytest.mark.parametrize("history", [None, {}, [None, 5, {"terminalState": "COMPLETED"}, entry("../../jars")]])
def test_a_history_that_is_off_or_unreadable_is_no_fault(replies, history):
    replies.history = history
    assert replies.told() == []


def test_before_2_3_nobody_asks(replies):
    replies.version, replies.history = "2.2.1", [entry(FIRST)]
    assert replies.told() == []
    assert HISTORY not in replies.asked
