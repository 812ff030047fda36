"""What the controller wants, minute by minute, of two jobs whose recorded polls show an overload that fills buffers."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from controller.evaluation.evaluate_job import evaluate_job
from controller.view.job_view import ActiveTarget, EvaluationState, JobView
from include.flink.raw_format import RawRecord
from include.settings.loading import check_settings
from models.polling.poll_history import PollHistory

POLLS = Path(__file__).parents[1] / "support" / "recordings" / "overload_polls.jsonl.xz"
SETTINGS = check_settings(
    {"clusters": {"c": {"window_s": 60, "slots_max": 8}}, "planner": {"timing": {"apply_every_s": 60}}}
)
Minute = tuple[Mapping[str, int], ActiveTarget | None, float]
"""What runs, what is wanted, and the outstanding records."""


def clock_s(text: str) -> int:
    return int(datetime.strptime(f"2026-11-28T{text}", "%Y-%m-%dT%H:%M").replace(tzinfo=UTC).timestamp())


@lru_cache
def replay(job: str, begin: str, end: str) -> dict[str, Minute]:
    """Return the minutes of a job; nothing that is wanted is carried out but what was then."""
    with lzma.open(POLLS, "rt") as file:
        records = [RawRecord(**json.loads(line)) for line in file]
    history, kept, result = PollHistory({"c": 60}, polls=200), EvaluationState(), {}
    given = 0
    for now_s in range(clock_s(begin), clock_s(end) + 1, 60):
        until = next((at for at, one in enumerate(records) if one.observed_at_ms > 1000 * now_s), len(records))
        history.add(records[given:until])
        given = until
        windows = history.windows(now_s)
        for number, seen in enumerate(history.jobs()):
            if seen.job == job:
                found = windows.observations(number)
                kept = evaluate_job(JobView("c", job, seen=seen, observations=found), kept, SETTINGS, now_s)
                outstanding = float(np.nansum(found.waiting_records[-1])) if len(found) else 0.0
                result[datetime.fromtimestamp(now_s, UTC).strftime("%H:%M")] = (
                    seen.running,
                    kept.standing,
                    outstanding,
                )
    return result


OVERLOADS = [("split", "19:20", "19:30"), ("join", "19:19", "19:47")]


@pytest.mark.parametrize("overload", OVERLOADS)
def test_nothing_is_taken_away_while_outstanding_records_grow(overload):
    minutes = list(replay(*overload).values())
    wanted = [
        (running, wish)
        for (_, _, before), (running, wish, now) in pairwise(minutes)
        if now > before > 1000 and wish is not None
    ]
    assert len(wanted) >= 4
    assert all(wish.wanted[name] >= running[name] for running, wish in wanted for name in running)
    assert all(" records wait, " in wish.reason for _, wish in wanted)


@pytest.mark.parametrize(
    ("overload", "short", "at"), [(OVERLOADS[0], "slow", "19:24"), (OVERLOADS[1], "Join", "19:32")]
)
def test_the_first_wish_is_more_of_the_operator_at_its_limit(overload, short, at):
    minutes = replay(*overload)
    first = next(minute for minute, (_, wish, _) in minutes.items() if wish is not None)
    assert first <= at
    running, wish, _ = minutes[first]
    name = next(name for name in running if name.startswith(short))
    assert wish.wanted[name] > running[name]


def test_at_a_constant_load_a_rise_is_followed_by_one_correction_at_most():
    """The job restores for four minutes and reads records again: that is no more load, and no less capacity."""
    after = [one for minute, one in replay(*OVERLOADS[1]).items() if minute >= "19:39"]
    assert all(min(running.values()) == 2 for running, _, _ in after)
    wishes = [None if wish is None else max(wish.wanted.values()) for _, wish, _ in after]
    assert len({wish for wish in wishes if wish is not None}) <= 1
    assert set(wishes[:5]) == {None}
