"""Series to raw lines: which TaskManager counts, what a run is, and what is left out."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_measurements import JOB, SOURCE, STEP_S, T0, WORK, bodies, manager, metric_of, subtask, write

from include.metric_sources.prometheus.graphs import GraphRegistry, SavedGraphError, as_label
from include.metric_sources.prometheus.job_runs import RecordedRun
from models.polling.poll_history import PollHistory

STEPS = 6
TIMES = [STEP_S * step - 2.0 for step in range(STEPS)]  # scraped 2 s before each step
COUNTS = [100.0 * step for step in range(STEPS)]
REPLY = {
    "jid": "e" * 32,
    "name": "my-orders",
    "vertices": [
        {"id": SOURCE, "name": "Source: orders", "maxParallelism": 64, "parallelism": 7},
        {"id": WORK, "name": "enrich", "maxParallelism": -1, "parallelism": 7},
    ],
    "plan": {"nodes": [{"id": WORK, "parallelism": 7, "inputs": [{"id": SOURCE, "num": 0}]}, {"id": SOURCE}]},
}


def counters(*rows: list[float]) -> list:
    return [subtask(WORK, index, TIMES, {"numRecordsIn": row}) for index, row in enumerate(rows)]


def test_counters_are_summed_over_subtasks_at_the_time_of_their_samples():
    late = [second + 1.0 for second in TIMES]
    tasks = [*counters(COUNTS), subtask(WORK, 1, late, {"numRecordsIn": [3 * value for value in COUNTS]})]
    result = bodies(write([manager(STEPS, [-500.0] * STEPS)], {WORK: tasks}, STEPS), "vertex_metrics")
    assert [at for at, _ in result] == [second + 0.5 for second in TIMES]
    metric = metric_of(result[2][1], "numRecordsIn")
    assert metric == {"id": "numRecordsIn", "min": 200.0, "max": 600.0, "avg": 400.0, "sum": 800.0, "skew": 50.0}


def test_the_newest_taskmanager_of_a_subtask_counts():
    """The old one stays visible for a while; it is passed over as soon as the new one has a sample."""
    nothing = [None] * 3
    old = subtask(WORK, 0, TIMES, {"numRecordsIn": COUNTS}, tm="tm-9")
    new = subtask(WORK, 0, [*nothing, *TIMES[3:]], {"numRecordsIn": [np.nan] * 3 + [1.0, 2.0, 3.0]}, tm="tm-1")
    for targets in ([old, new], [new, old]):
        result = bodies(write([manager(STEPS, [-500.0] * STEPS)], {WORK: targets}, STEPS), "vertex_metrics")
        sums = [metric_of(body, "numRecordsIn")["sum"] for _, body in result]
        assert sums == [0.0, 100.0, 200.0, 1.0, 2.0, 3.0]


def test_a_missed_scrape_is_a_missing_sample_and_no_smaller_parallelism():
    times = [*TIMES[:2], None, None, *TIMES[4:]]
    tasks = [*counters(COUNTS), subtask(WORK, 1, times, {"numRecordsIn": COUNTS})]
    records = write([manager(STEPS, [-500.0] * STEPS)], {WORK: tasks}, STEPS)
    assert [at for at, _ in bodies(records, "vertex_metrics")] == [TIMES[step] for step in (0, 1, 4, 5)]
    assert {body["vertices"][0]["parallelism"] for _, body in bodies(records, "job")} == {2}


def test_a_sample_that_is_too_old_or_given_again_is_none():
    times = [TIMES[0], TIMES[0], TIMES[0], TIMES[3], TIMES[4], TIMES[5]]  # 2, 12, 22 s old
    records = write(
        [manager(STEPS, [-500.0] * STEPS)], {WORK: [subtask(WORK, 0, times, {"numRecordsIn": COUNTS})]}, STEPS
    )
    assert [at for at, _ in bodies(records, "vertex_metrics")] == [TIMES[0], TIMES[3], TIMES[4], TIMES[5]]


def test_a_rescale_is_a_run_of_its_own_and_what_was_before_it_is_not_counted():
    running = [-500.0, -500.0, 15.0, 15.0, 15.0, 15.0]
    stays = counters(COUNTS)  # its sample of step 2 is from second 18, of the new run
    grown = subtask(WORK, 1, [None, None, None, *TIMES[3:]], {"numRecordsIn": COUNTS})
    records = write([manager(STEPS, running, [0, 0, 1, 1, 1, 1])], {WORK: [*stays, grown]}, STEPS)
    reported = [
        (body["timestamps"]["RUNNING"] / 1000 - T0, body["vertices"][0]["parallelism"])
        for _, body in bodies(records, "job")
    ]
    assert reported == [(-500.0, 1)] * 2 + [(15.0, 2)] * 4
    assert [at for at, _ in bodies(records, "vertex_metrics")] == [TIMES[0], TIMES[1], *TIMES[3:]]


def test_slow_scrapes_are_one_run_and_restarts_in_a_row_are_two():
    slow = [-500.0, -500.4, -505.0, -500.0, -500.0, -500.0]
    reported = bodies(write([manager(STEPS, slow)], {WORK: counters(COUNTS)}, STEPS), "job")
    assert {body["timestamps"]["RUNNING"] for _, body in reported} == {1000 * (T0 - 500)}
    quick = [-5.0, -5.0, 3.0, 12.0, 12.0, 12.0]
    reported = bodies(write([manager(STEPS, quick, [0, 0, 1, 2, 2, 2])], {WORK: counters(COUNTS)}, STEPS), "job")
    assert {body["timestamps"]["RUNNING"] / 1000 - T0 for _, body in reported} == {-5.0, 3.0, 12.0}


def test_a_run_that_other_lines_tell_of_keeps_its_time_and_parallelism():
    known = {JOB: (RecordedRun(1000 * T0 - 500_037, {WORK: 3}),)}
    records = write([manager(STEPS, [-500.0] * STEPS)], {WORK: counters(COUNTS)}, STEPS, known=known)
    assert {body["timestamps"]["RUNNING"] for _, body in bodies(records, "job")} == {1000 * T0 - 500_037}
    assert {body["vertices"][0]["parallelism"] for _, body in bodies(records, "job")} == {3}
    assert bodies(records, "vertex_metrics") == []  # one of three subtasks was scraped


def test_a_stop_has_one_time_and_no_parallelism():
    running = [-500.0, None, None, 25.0, 25.0, 25.0]
    down = [0, 4_000, 14_000, 0, 0, 0]
    reported = bodies(write([manager(STEPS, running, restartingTime=down)], {WORK: counters(COUNTS)}, STEPS), "job")
    stopped = [body for _, body in reported if body["state"] != "RUNNING"]
    assert [body["state"] for body in stopped] == ["RESTARTING"] * 2
    assert {body["timestamps"]["RESTARTING"] for body in stopped} == {1000 * (T0 + 6)}
    assert not any("parallelism" in vertex for body in stopped for vertex in body["vertices"])


def test_without_tasks_of_a_run_nothing_is_told_of_it():
    assert bodies(write([manager(STEPS, [-500.0] * STEPS)], {}, STEPS), "job") == []
    young = write([manager(STEPS, [-5.0] * STEPS)], {WORK: counters(COUNTS)}, STEPS, hold_s=30.0)
    assert [at for at, _ in bodies(young, "job")] == [30.0, 40.0, 50.0]


def test_a_new_jobmanager_goes_on_with_the_old_ones_job():
    first, second = manager(STEPS, [-500.0] * STEPS), manager(STEPS, [-500.0] * STEPS)
    first.times_s[3:], second.times_s[:3] = np.nan, np.nan
    assert len(bodies(write([first, second], {WORK: counters(COUNTS)}, STEPS), "job")) == STEPS


def test_a_checkpoint_is_told_once_with_its_own_times():
    done = [1000.0 * (T0 + second) for second in (-3, -3, 17, 17, 17, 47)]
    metrics = {
        "lastCheckpointCompletedTimestamp": done,
        "lastCompletedCheckpointId": [7, 7, 8, 8, 8, 9],
        "lastCheckpointDuration": [250] * STEPS,
        "lastCheckpointFullSize": [4096] * STEPS,
    }
    records = write([manager(STEPS, [-500.0] * STEPS, **metrics)], {WORK: counters(COUNTS)}, STEPS)
    latest = [body["latest"]["completed"] for _, body in bodies(records, "checkpoints")]
    assert [one["id"] for one in latest] == [7, 8, 9]
    assert latest[1]["trigger_timestamp"] == done[2] - 250
    assert latest[1]["state_size"] == 4096


@pytest.fixture
def saved(tmp_path):
    (tmp_path / "orders.json").write_text(json.dumps(REPLY))
    return GraphRegistry(folder=tmp_path)


def test_a_saved_graph_of_the_same_vertices_gives_names_edges_and_maximum(saved):
    tasks = {WORK: counters(COUNTS), SOURCE: [subtask(SOURCE, 0, TIMES, {"numRecordsOut": COUNTS})]}
    records = write([manager(STEPS, [-500.0] * STEPS)], tasks, STEPS, book=saved)
    job = bodies(records, "job")[0][1]
    assert job["name"] == "my-orders"
    assert {one["name"]: one.get("maxParallelism") for one in job["vertices"]} == {"Source: orders": 64, "enrich": None}
    assert {one["parallelism"] for one in job["vertices"]} == {1}
    (plan,) = bodies(records, "plan")
    assert plan[1]["plan"]["nodes"] == [{"id": WORK, "inputs": [{"id": SOURCE, "num": 0}]}, {"id": SOURCE}]


def test_without_a_graph_labels_are_the_names_and_there_is_no_plan():
    tasks = {SOURCE: [subtask(SOURCE, 0, TIMES, {"numRecordsOut": COUNTS})]}
    records = write([manager(STEPS, [-500.0] * STEPS)], tasks, STEPS)
    job = bodies(records, "job")[0][1]
    assert (job["name"], job["vertices"][0]["name"]) == ("my_orders", "Source: orders")
    assert "maxParallelism" not in job["vertices"][0]
    assert bodies(records, "plan") == []


def test_a_graph_of_other_vertices_is_not_taken(saved):
    assert saved.find(JOB, "my_orders", ["9" * 32]) is None
    assert saved.find(JOB, "other", [SOURCE]) is None  # a part of it, under another name
    assert saved.find(JOB, as_label("my-orders"), [SOURCE]) is not None


def test_a_saved_graph_that_is_none_is_named(tmp_path):
    (tmp_path / "bad.json").write_text('{"jid": "x"}')
    with pytest.raises(SavedGraphError, match=r"bad\.json"):
        GraphRegistry(folder=tmp_path)


def test_live_windows_read_the_lines_as_those_of_rest(saved):
    steps, rate = 61, 50.0
    times = [STEP_S * step - 2.0 for step in range(steps)]
    counts = [rate * STEP_S * step for step in range(steps)]
    busy = {"accumulateBusyTimeMs": [300.0 * STEP_S * step for step in range(steps)]}
    tasks = {
        WORK: [subtask(WORK, index, times, {"numRecordsIn": counts, **busy}) for index in range(2)],
        SOURCE: [subtask(SOURCE, 0, times, {"numRecordsOut": [2 * value for value in counts]})],
    }
    history = PollHistory({"c": 60}, polls=70)
    assert history.add(write([manager(steps, [-500.0] * steps)], tasks, steps, book=saved)) == []
    (job,) = history.jobs()
    assert (job.job, job.state, job.running) == ("my-orders", "RUNNING", {"Source: orders": 1, "enrich": 2})
    assert job.graph is not None


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=8))
def test_aggregates_agree_with_each_other(values):
    tasks = [subtask(WORK, index, [0.0], {"numRecordsIn": [value]}) for index, value in enumerate(values)]
    ((_, body),) = bodies(write([manager(1, [-500.0])], {WORK: tasks}, 1), "vertex_metrics")
    metric = metric_of(body, "numRecordsIn")
    assert metric["sum"] == pytest.approx(sum(values))
    assert metric["avg"] == pytest.approx(np.mean(values))
    assert (metric["min"], metric["max"]) == (min(values), max(values))
    assert metric["skew"] >= 0.0
