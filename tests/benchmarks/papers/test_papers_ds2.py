"""DS2's experiments, reduced where they take long: acceptance figures and what the simulated jobs are."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.papers.ds2 import accuracy, convergence, flink_wordcount, heron_wordcount, overhead, timely
from benchmarks.papers.ds2.drive import Driver
from benchmarks.papers.ds2.ds2_published import AS_PUBLISHED, PUBLISHED
from benchmarks.papers.ds2.nexmark import CURVES, Q11_AS_Q5, QUERIES, SLOTS, job, source_rates
from lab.policies.dhalion.dhalion_policy import Dhalion
from lab.policies.ds2.ds2_options import ManagerOptions
from lab.policies.ds2.ds2_policy import Ds2
from lab.simulation.capacity import compute_capacity_curve

ANY = (1, 2, *convergence.STARTS, SLOTS)


@pytest.fixture(scope="module")
def indicated() -> convergence.Runs:
    return convergence.runs(convergence.INDICATED, ANY)


def test_heron_is_sized_in_one_step_and_dhalion_takes_more() -> None:
    driver = heron_wordcount.run_from_one_instance(Ds2(AS_PUBLISHED))
    assert [action.parallelism for action in driver.actions[0]] == [(1, 10, 20)]
    assert driver.actions[0][0].at_s == 60.0
    assert len(heron_wordcount.run_from_one_instance(Dhalion()).actions[0]) > 1


def test_skew_ends_at_the_optimum_without_skew_and_misses_the_target() -> None:
    driver = heron_wordcount.run_skewed(0.5)
    assert driver.parallelism(0) == (1, 10, 20)
    # the hottest of 20 instances gets 0.5 + 0.5 / 20 of the words: it limits the job to 1 / 0.525 instances' worth
    assert driver.windows[-1].in_per_s[0, 0] / heron_wordcount.SENTENCES_PER_S == pytest.approx(1 / 0.525 / 20)


def test_word_count_on_flink_takes_the_published_steps_but_the_last() -> None:
    actions, rows = flink_wordcount.run()
    published = [tuple(action[1:]) for action in PUBLISHED["flink_wordcount"]["actions"]]
    assert [action.parallelism[1:] for action in actions] == published[:3]
    assert actions[0].at_s == 40.0  # three intervals of warm-up and one
    emitted = dict(zip(rows[:, 0], rows[:, 1], strict=True))
    assert (emitted[790.0], emitted[1300.0]) == (2e6, 1e6)


def test_contention_gives_the_rates_that_the_published_steps_ask_for() -> None:
    flatmap, count = flink_wordcount.OPERATORS["FlatMap"], flink_wordcount.OPERATORS["Count"]
    result = [
        np.ceil(rate * p / operator.capacity_per_s(rate, p))
        for operator, p, rate in ((flatmap, 10, 2e6), (flatmap, 14, 2e6), (flatmap, 19, 2e6), (flatmap, 19, 1e6))
    ]
    assert result == [14, 19, 19, 7]
    assert [np.ceil(rate * p / count.capacity_per_s(rate, p)) for p, rate in ((5, 2e6), (7, 2e6), (11, 1e6))] == [
        7,
        11,
        4,
    ]


def test_non_linear_jobs_converge_in_three_steps_from_any_start(indicated: convergence.Runs) -> None:
    assert len(indicated) == (len(QUERIES) + 1) * len(ANY)
    assert max(run.steps for (query, _), run in indicated.items() if query in QUERIES) == 3
    assert max(run.steps for (query, _), run in indicated.items() if query == Q11_AS_Q5) > 3


def test_they_end_without_backpressure_at_most_one_above_the_smallest(indicated: convergence.Runs) -> None:
    assert {run.above for run in indicated.values()} == {0, 1}
    for query in CURVES:
        curve = compute_capacity_curve(job(query, "job").operators[-1], SLOTS)
        load = source_rates(query, 3).sum()
        assert indicated[query, 1].smallest == int(np.flatnonzero(curve >= load)[0])


def test_the_parallelism_moves_in_one_direction_only(indicated: convergence.Runs) -> None:
    for run in indicated.values():
        assert len(set(np.sign(np.diff(run.path)))) <= 1, run.path


def test_the_histogram_counts_every_run_once(indicated: convergence.Runs) -> None:
    cells = convergence.cells(indicated, indicated)
    for column in ("as in the code", "no change ignored"):
        steps = [cell for cell in cells if cell.column == column and cell.unit == "runs of 36" and cell.table == "4"]
        assert sum(cell.ours for cell in steps) == len(QUERIES) * len(convergence.STARTS) == 36
        assert sum(cell.published or 0 for cell in steps) == 36


def test_timely_finds_the_same_smallest_number_of_workers_from_every_start() -> None:
    assert timely.final_workers("Q3") == [4] * len(timely.STARTS)
    assert (timely.late_share("Q3", 4), timely.late_share("Q3", 3)) == (0.0, 1.0)


def test_warm_up_delays_a_simulated_job_and_a_degraded_one_is_rolled_back() -> None:
    """After the first step the disks get slow: the job achieves a quarter of what it did, and goes back."""
    options = ManagerOptions(warm_up_intervals=2)
    spec = heron_wordcount.word_count("job")
    driver = Driver([spec], np.array([[1, 5, 10]]), Ds2(options), window_s=60.0, redeploy_s=(60.0,), step_s=10.0)
    rates = np.array([[heron_wordcount.SENTENCES_PER_S, 0.0, 0.0]])
    for _ in range(3):
        driver.interval(rates)
    assert [(action.at_s, action.parallelism) for action in driver.actions[0]] == [(180.0, (1, 10, 20))]
    slow = driver.testbed.fleet.curves[0, 1] / 8
    driver.testbed.set_capacity(0, 1, slow)
    for _ in range(5):
        driver.interval(rates)
    # redeployment until 240 s, two intervals of warm-up, one that is judged
    assert [(action.at_s, action.parallelism) for action in driver.actions[0][1:]] == [(420.0, (1, 5, 10))]
    assert "rolls back" in driver.actions[0][1].reason


def test_the_indicated_parallelism_keeps_up_and_waiting_grows_with_less(indicated: convergence.Runs) -> None:
    figures = {(cell.row, cell.column): cell.ours for cell in accuracy.cells(indicated)}
    for query in QUERIES:
        assert figures[query, "source rate / target, as indicated"] == 1.0
        less = figures[query, "source rate / target, one instance less"]
        assert figures[query, "held back with one instance less"] == (less < 1.0 - 1e-6)
        assert figures[query, "latency, one instance more / as indicated"] < 1.0
    assert sum(figures[query, "held back with one instance less"] for query in QUERIES) >= 5


def test_overhead_is_a_share_of_the_interval() -> None:
    shares = [cell.ours for cell in overhead.cells()]
    assert len(shares) == 2
    assert all(0.0 < share < 1.0 for share in shares)


def test_dhalion_with_queues_overshoots_where_ds2_does_not() -> None:
    figures = {(cell.row, cell.column): cell.ours for cell in heron_wordcount.cells() if cell.table == "5.2"}
    sizes = {row: figures[row, "FlatMap"] + figures[row, "Count"] for row, _ in figures}
    assert sizes["DS2"] == sizes["Dhalion"] < sizes["Dhalion, queues of 100 MiB"]
    assert figures["DS2", "steps"] < figures["Dhalion", "steps"] < figures["Dhalion, queues of 100 MiB", "steps"]
