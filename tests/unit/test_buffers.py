"""Records that wait between operators, against what a real job showed (``lab/simulation/change_times.py``)."""

from __future__ import annotations

import numpy as np
import pytest

from lab.simulation.change_times import ChangeDelays
from lab.simulation.fleet import pack
from lab.simulation.spec import JobSpec, OperatorSpec, Ship
from lab.simulation.state import compute_checkpoint_duration
from lab.simulation.testbed import Testbed

LOAD_PER_S, LIMIT_PER_S = 644.0, 500.0
JOB = JobSpec(
    "buffered",
    (
        OperatorSpec("Source: a", (), 5000.0, 0.0),
        OperatorSpec("slow", ("Source: a",), LIMIT_PER_S / 2, 0.0, selectivity=0.0),
    ),
    failures_per_week=0.0,
    state_bytes_per_record=0.0,
)


@pytest.fixture
def bed() -> Testbed:
    """The job of the recording: a source of four subtasks before two that take 500/s together."""
    return Testbed([JOB], np.array([[4, 2]]))


def run(bed: Testbed, seconds: float, rate_per_s: float = LOAD_PER_S):
    return bed.run(np.array([[rate_per_s, 0.0]]), seconds)


def test_an_exchange_holds_what_was_measured_and_a_forward_one_less() -> None:
    assert pack([JOB]).compute_room(np.array([[4, 2]]))[0] == pytest.approx([0.0, 26_000.0], rel=0.02)
    slow = OperatorSpec("slow", ("Source: a",), 250.0, ship=Ship.FORWARD)
    forward = pack([JobSpec("forward", (JOB.operators[0], slow))])
    assert forward.compute_room(np.array([[2, 2]]))[0, 1] == 2 * 20 * 32768 / 100


def test_an_overload_fills_the_buffers_for_minutes_before_anything_is_held_back(bed: Testbed) -> None:
    """Measured: nothing is backpressured for 180 s, the source has no backlog, its records are 46 to 54 s old."""
    filling = run(bed, 170.0)
    assert filling.in_per_s[0] == pytest.approx([LOAD_PER_S, LIMIT_PER_S])
    assert filling.backpressured[0, 0] == 0.0
    assert filling.backlog[0, 0] == 0.0
    assert bed.state.transit_s[0] == pytest.approx(46.0, abs=5.0)
    run(bed, 30.0)
    full = run(bed, 60.0)
    assert full.backpressured[0, 0] > 0.8
    assert full.in_per_s[0] == pytest.approx([LIMIT_PER_S, LIMIT_PER_S])
    assert full.backlog[0, 0] > 5_000.0
    # Lateness is that of all that waits.
    assert full.latency_ms[0, 0] > 1000.0 * 26_000 / LOAD_PER_S


def test_counters_show_what_is_in_the_buffers_and_a_restart_empties_them(bed: Testbed) -> None:
    run(bed, 100.0)
    state = bed.state
    between = state.records_out[0, 0] - state.records_in[0, 1]
    assert between == pytest.approx(state.buffered[0, 0]) == pytest.approx(100 * (LOAD_PER_S - LIMIT_PER_S))
    outstanding = float(state.backlog[0, 0])
    bed.rescale(0, np.array([4, 3]), downtime_s=10.0)
    assert state.buffered[0, 0] == 0.0
    assert state.backlog[0, 0] == outstanding


def test_a_barrier_takes_as_long_as_the_buffers_are_old(bed: Testbed) -> None:
    run(bed, 100.0)
    age_s = float(bed.state.transit_s[0])
    assert compute_checkpoint_duration(bed.fleet, bed.state)[0] == pytest.approx(0.4 + age_s)
    times = ChangeDelays(checkpoint_interval_s=120.0)
    assert times.find_stop_s(100.0, 0.0, age_s) - times.find_stop_s(100.0, 0.0) == pytest.approx(age_s)


def test_buffers_drain_before_the_source_takes_less_than_arrives(bed: Testbed) -> None:
    run(bed, 100.0)
    run(bed, 100.0, 300.0)
    assert bed.state.backlog[0, 0] == pytest.approx(0.0, abs=1.0)
    assert bed.state.buffered[0, 0] == pytest.approx(0.0, abs=1.0)


def test_simulators_of_papers_have_no_buffers() -> None:
    window = run(Testbed([JOB], np.array([[4, 2]]), has_buffers=False), 60.0)
    assert window.in_per_s[0] == pytest.approx([LIMIT_PER_S, LIMIT_PER_S])
    assert window.backlog[0, 0] == pytest.approx(60.0 * (LOAD_PER_S - LIMIT_PER_S))
