"""Replies of one job with anything in any place: nothing is raised, and the other job is seen as if it were alone."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from live_replies import SOURCE, T0_S, WORK, Job, metric, ms

from include.flink.raw_format import Endpoint, RawRecord
from models.policies.observations import MEASURES
from models.polling.poll_history import PollHistory

BROKEN, SOUND = Job(), Job(job_id="b" * 32, name="rides")
ROUNDS, POLLS = 25, 20  # some 2,000 replies with junk
JUNK: list[Any] = [
    None, True, 0, -1, 1, 10**400, 253_402_300_799_999, 0.5, float("nan"), float("inf"), -1e300,
    "", "NaN", "x", "\ud83d", "Foo$$Lambda$14/0x00$x", "\x00", [], {}, [None], {"id": None}, [[]], {"id": "1" * 32},
]  # fmt: skip


def replies(job: Job, at: float) -> Iterator[tuple[str, Any, str | None]]:
    """Yield kind, body and vertex of every reply of a poll."""
    done = {"status": "COMPLETED", "latest_ack_timestamp": ms(at - 5), "trigger_timestamp": ms(at - 6)}
    running_s = 100 * (at // 200)  # a stop now and then
    yield Endpoint.JOB, job.body(running_s, timestamps={"RESTARTING": ms(running_s - 5)}, **plan(job)), None
    yield Endpoint.PLAN, plan(job), None
    yield Endpoint.CHECKPOINTS, {"latest": {"completed": done}, "history": [done]}, None
    entry = {"exceptionName": "E", "stacktrace": "lost\n at x", "timestamp": ms(running_s - 4)}
    yield Endpoint.EXCEPTIONS, {"exceptionHistory": {"entries": [entry]}}, None
    yield Endpoint.JOB_METRICS, [{"id": "uptime", "value": "7"}], None
    for name, vertex_id in job.vertices.items():
        values = {"numRecordsIn": 3.0 * at, "numRecordsOut": 2.0 * at, "accumulateBusyTimeMs": 500.0 * at}
        yield Endpoint.VERTEX_METRICS, [metric(*one, job.parallelism[name]) for one in values.items()], vertex_id
    yield Endpoint.OVERVIEW, {"slots-total": 8, "slots-available": 1}, None


def plan(job: Job) -> dict[str, Any]:
    return json.loads(job.plan(0).body)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*at, key))


def mutate(random_: random.Random, body: Any) -> str:
    """Return a body with junk in some place, or cut, or not JSON at all."""
    changed = copy.deepcopy(body)
    *path, last = random_.choice([place for place in places(body) if place] or [(0,)])
    inside = changed
    for key in path:
        inside = inside[key]
    if random_.random() < 0.2:
        del inside[last]
    else:
        inside[last] = copy.deepcopy(random_.choice(JUNK))
    text = json.dumps(changed)
    return text[: random_.randrange(len(text))] if random_.random() < 0.1 else text


def poll(job: Job, at: float, random_: random.Random | None = None) -> list[RawRecord]:
    result = []
    for kind, body, vertex_id in replies(job, at):
        text = mutate(random_, body) if random_ and random_.random() < 0.5 else json.dumps(body)
        result.append(job.record(at, kind, text, vertex_id))
    return result


def history(seed: int | None) -> PollHistory:
    """Return what is seen of the sound job: alone when there is no seed."""
    made, random_ = PollHistory({"c": 60}), None if seed is None else random.Random(seed)
    for at in range(0, 30 * POLLS, 30):
        faults = made.add(([] if random_ is None else poll(BROKEN, at, random_)) + poll(SOUND, at))
        assert not [fault for fault in faults if fault.job == "rides"]
        assert all(fault.detail.isprintable() and len(fault.detail) < 400 for fault in faults)
    return made


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_the_other_job_is_seen_as_if_it_were_alone(seed: int) -> None:
    compare(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(ROUNDS, 50 * ROUNDS))
def test_the_other_job_is_seen_as_if_it_were_alone_100_000_times(seed: int) -> None:
    compare(seed)


def compare(seed: int) -> None:
    alone, beside = history(None), history(seed)
    (expected,), jobs = alone.jobs(), beside.jobs()
    number = next(number for number, job in enumerate(jobs) if job.job_id == SOUND.job_id)
    assert jobs[number] == expected
    assert expected.running == {SOURCE: 1, WORK: 2}
    now_s = T0_S + 30 * POLLS
    one, other = alone.windows(now_s), beside.windows(now_s)
    wanted, result = one.observations(0), other.observations(number)
    assert len(wanted) > 5
    assert 0 < wanted.disturbed.sum() < len(wanted)
    for name in ("window_start_s", "disturbed", "parallelism", *MEASURES):
        np.testing.assert_array_equal(getattr(result, name), getattr(wanted, name), err_msg=name)
    for place, job in enumerate(jobs):  # what is left of the broken one can be looked at, and is in range
        observed = other.observations(place)
        assert observed.parallelism.shape == (len(observed), len(job.vertex_ids))
        for share in ("busy_share", "idle_share", "backpressured_share"):
            values = getattr(observed, share)
            assert ((values >= 0) & (values <= 1) | np.isnan(values)).all()
