"""Between two evaluations the controller looks at each job's last minutes, and answers where it falls behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programme_line import GRAPH, RUNNING, START_S, window

from controller.evaluation.evaluate_job import answer_alarm, evaluate_job
from controller.evaluation.form_intention import form_intention
from controller.memory.stored_memories import StoredMemories
from controller.tick import TickSummary
from controller.view.job_view import EvaluationState, JobView
from include.domain.operator_matching import PlacedOperator
from include.settings import Planner, Settings
from models.policies.observations import MEASURES, Observations
from models.polling.seen_job import PolledJob

EVALUATED_S = START_S + 300 * 30
NOW_S = EVALUATED_S + 180
SETTINGS = Settings()


def form_windows(rows: list[dict[str, Any]], window_s: int, until_s: int) -> Observations:
    arrays: dict[str, Any] = {name: np.array([row[name] for row in rows]) for name in ("disturbed", *MEASURES)}
    starts = until_s - window_s * np.arange(len(rows), 0, -1)
    parallelism = np.array([row["parallelism"] for row in rows])
    return Observations(window_start_s=starts, window_s=window_s, parallelism=parallelism, **arrays)


def seen(at_s: int) -> PolledJob:
    return PolledJob(
        cluster="c",
        job="orders",
        job_id="a" * 32,
        state="RUNNING",
        polled_at_ms=1000 * at_s,
        running=dict(zip(GRAPH.names, RUNNING, strict=True)),
        restarting=False,
        vertex_ids={name: str(place) * 32 for place, name in enumerate(GRAPH.names)},
        finished=frozenset(),
        graph=GRAPH,
        stops=(),
        metrics={},
    )


def minutes(waiting_s: list[float], load: float = 14_000.0) -> Observations:
    rows = [window(0, load, RUNNING, lag_s, processing_rate_per_s=np.full(3, 8000.0)) for lag_s in waiting_s]
    return form_windows(rows, 60, NOW_S)


@pytest.fixture(scope="module")
def view() -> JobView:
    calm = [window(0, 7000.0 * factor, RUNNING) for factor in (1.0, 1.02, 0.98) * 10]
    return JobView("c", "orders", seen=seen(NOW_S), observations=form_windows(calm, 300, EVALUATED_S))


@pytest.fixture(scope="module")
def before(view: JobView) -> EvaluationState:
    return evaluate_job(view, EvaluationState(), SETTINGS, EVALUATED_S)


def test_a_burst_between_two_evaluations_is_answered_at_the_next_poll(view: JobView, before: EvaluationState) -> None:
    assert before.standing is None
    after = answer_alarm(replace(view, looks=minutes([0.0, 0.0, 25.0])), before, SETTINGS, NOW_S)
    assert after.standing is not None
    assert after.standing.wanted["map"] >= 15
    assert after.standing.valid_until_s == NOW_S + 300
    assert replace(after, standing=None, remark="") == replace(before, remark="")  # learnt when the window is whole
    intention = form_intention(view, after, SETTINGS, NOW_S, None)
    assert intention is not None
    assert intention.falls_behind


@pytest.mark.parametrize("waiting_s", [[0.0, 0.0, 25.0], [10.0, 18.0, 31.0], [0.0, 0.0, 2.0]])
def test_an_evaluation_at_once_is_made_again_bit_for_bit_from_what_is_kept(
    view: JobView, before: EvaluationState, waiting_s: list[float], tmp_path: Path
) -> None:
    memories, name, looked = StoredMemories(str(tmp_path)), ("c", "orders"), minutes(waiting_s)

    def store(state: EvaluationState) -> EvaluationState:
        memories.append({name: state}, NOW_S)
        return memories.read([name], NOW_S)[name]

    after = answer_alarm(replace(view, looks=looked), before, SETTINGS, NOW_S)
    again = answer_alarm(replace(view, looks=looked), store(before), SETTINGS, NOW_S)
    assert again == replace(after, remark=again.remark)
    later = evaluate_job(view, after, SETTINGS, NOW_S)
    assert evaluate_job(view, store(after), SETTINGS, NOW_S) == later


@pytest.mark.parametrize(
    ("looks", "settings"),
    [
        (None, SETTINGS),
        (minutes([0.0, 0.0, 2.0]), SETTINGS),
        (minutes([60.0, 50.0, 40.0]), SETTINGS),
        (minutes([0.0, 0.0, 25.0]), Settings(planner=Planner(policy="need_vector"))),
    ],
    ids=["an evaluation", "calm", "catches up", "rules of ten minutes"],
)
def test_else_what_was_kept_stands(
    view: JobView, before: EvaluationState, looks: Observations | None, settings: Settings
) -> None:
    assert answer_alarm(replace(view, looks=looks), before, settings, NOW_S) is before


def test_a_job_that_was_deployed_under_other_names_is_evaluated_when_its_turn_comes(
    view: JobView, before: EvaluationState
) -> None:
    placed = [PlacedOperator(name, str(place) * 32, place) for place, name in enumerate(GRAPH.names)]
    assert view.seen is not None
    looks = minutes([0.0, 0.0, 25.0])
    for names, is_answered in ((GRAPH.names, True), (("source", "before", "sink"), False)):
        kept = tuple(replace(one, name=name) for one, name in zip(placed, names, strict=True))
        asked = replace(view, looks=looks, seen=replace(view.seen, placed=tuple(placed)))
        known = replace(before, operators=kept)
        assert (answer_alarm(asked, known, SETTINGS, NOW_S) is not known) is is_answered


def test_a_tick_says_how_many_jobs_are_behind() -> None:
    summary = TickSummary(jobs=9, seen=9, alarms=2)
    assert summary.is_eventful
    assert str(summary).startswith("9 jobs followed, 2 behind, 9 seen")
