"""Rivals that only the replay has: their rules, and the form in which any candidate runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.replay.replay_candidates import build_candidates
from benchmarks.replay.rivals.best_constant import find_best_constant, list_constants
from benchmarks.replay.rivals.capacity_notes import CapacityNotes
from benchmarks.replay.rivals.fall_delay import FallDelay, delay_fall
from benchmarks.replay.rivals.formed_driver import scale_arrivals
from benchmarks.replay.rivals.predictive_scaling import average_by_hour
from benchmarks.replay.rivals.rival_catalogue import build_rival, list_rivals
from benchmarks.replay.rivals.rival_options import CandidateForm, CpuStepsOptions
from benchmarks.replay.rivals.weekly_schedule import find_scheduled_load
from lab.replay.candidate_policies import CandidatePolicy
from lab.replay.conditions import AT_ONCE, Conditions
from lab.replay.replay_run import ReplayResult, ReplayRun
from lab.replay.workload import Workload, find_limits
from lab.simulation.spec import JobSpec, OperatorSpec
from models.policies.tuning.capacity_history import ObservedCapacity
from models.scheduling.demand import LEVELS, SourceForecast

MONDAY = 1_709_510_400  # 2024-03-04 00:00 UTC
UNDISTURBED = replace(AT_ONCE, failures_per_day=0, capacity_noise=0.0)
LINE = JobSpec(
    "line",
    (
        OperatorSpec("in", (), 1000.0, contention=0.0),
        OperatorSpec("work", ("in",), 100.0, contention=0.0, selectivity=0.0),
    ),
    slots_max=16,
)


def wave(days: float, low: float = 250.0, high: float = 750.0) -> Workload:
    """Return a job whose load has its crest at 06:00 and its trough at 18:00."""
    at = np.arange(round(days * 8640)) * 10.0
    mean, swing = (high + low) / 2, (high - low) / 2
    return Workload(LINE, MONDAY, 10, (mean + swing * np.sin(2 * np.pi * at / 86400))[:, None])


def run(load: Workload, *names: str, **forms: CandidateForm) -> ReplayResult:
    conditions = Conditions(disturbances=UNDISTURBED)
    return ReplayRun(load, build_candidates((*names, *forms), load, conditions, forms), [0], conditions).run()


def work_slots(result: ReplayResult, place: int = 0) -> Any:
    return result.ledger.slots[:, place]


def test_a_fall_waits_and_takes_the_highest_wish_of_the_delay() -> None:
    running = {"a": 8}
    memory = FallDelay()
    for at_s, wanted in ((0, 3), (300, 5), (600, 4)):
        target, memory = delay_fall(memory, {"a": wanted}, running, at_s, 900)
        assert target is None
    assert delay_fall(memory, {"a": 8}, running, 700, 900) == (None, memory)  # silence ends nothing
    target, after = delay_fall(memory, {"a": 2}, running, 900, 900)
    assert target == {"a": 5}
    assert after == FallDelay()


def test_a_rise_is_taken_at_once_and_drops_what_waited() -> None:
    _, memory = delay_fall(FallDelay(), {"a": 3, "b": 3}, {"a": 8, "b": 4}, 0, 900)
    target, after = delay_fall(memory, {"a": 3, "b": 6}, {"a": 8, "b": 4}, 300, 900)
    assert target == {"a": 8, "b": 6}
    assert after == FallDelay()


def test_without_a_delay_falls_are_taken_at_once() -> None:
    assert delay_fall(FallDelay(), {"a": 3}, {"a": 8}, 0, 0)[0] == {"a": 3}


def test_the_schedule_by_hand_prefers_last_week_to_yesterday() -> None:
    loads = {100: 5.0, 100 + 6 * 24: 9.0}
    assert find_scheduled_load(loads, 100 + 7 * 24) == 5.0
    assert find_scheduled_load({100 + 6 * 24: 9.0}, 100 + 7 * 24) == 9.0
    assert find_scheduled_load({}, 100) is None


def test_the_schedule_by_hand_runs_all_slots_on_its_first_day_and_follows_the_hours_then() -> None:
    slots = work_slots(run(wave(2.0), "weekly_schedule"))
    assert (slots[12:280] == 16).all()
    assert 9 <= slots[288 + 70] <= 12  # 750/s x 1.2 at 100/s each, known from noisy windows
    assert slots[288 + 210] < 6


def test_cpu_steps_double_after_a_quarter_of_an_hour_and_halve_after_hours() -> None:
    load = Workload(LINE, MONDAY, 10, np.repeat([400.0, 570.0, 20.0], [360, 360, 3600])[:, None])
    slots = work_slots(run(load, "cpu_steps"))
    assert (slots[:12] == 6).all()  # 400/s at 70% of 100/s each
    first, last = int(np.argmax(slots == 12)), int(np.argmax(slots[24:] == 6)) + 24
    assert (first - 12) * 300 == 900  # 95% busy since the first hour's end
    assert (last - 24) * 300 == 6 * 3600


def test_cpu_steps_refuse_a_low_use_above_the_high_one() -> None:
    with pytest.raises(ValueError, match="must be below"):
        CpuStepsOptions(high=0.5, low=0.6)
    with pytest.raises(ValueError, match="nothing"):
        build_rival("cpu_steps", {"nothing": 1})


def test_predictive_scaling_averages_the_median_over_hours() -> None:
    quantiles = {name: np.tile(np.arange(24.0) * scale, (len(LEVELS), 1)) for name, scale in (("a", 1.0), ("b", 2.0))}
    means = average_by_hour(SourceForecast(MONDAY, 300, quantiles))
    assert means == {MONDAY // 3600: 3 * 5.5, MONDAY // 3600 + 1: 3 * 17.5}


def test_predictive_scaling_is_there_before_a_jump_that_it_has_seen_before() -> None:
    at_s = np.arange(3 * 8640) * 10
    load = Workload(LINE, MONDAY, 10, np.where((at_s // 3600) % 24 < 12, 200.0, 800.0)[:, None])
    slots = work_slots(run(load, "predictive_scaling"))
    before = 2 * 288 + 144 - 1  # the five minutes before noon of the third day
    assert slots[before] >= 11  # 800/s at 70% of 100/s each
    assert slots[144 - 1] <= 4  # on the first day nothing is known


def test_the_controller_alone_follows_the_load_without_a_plan() -> None:
    result = run(wave(1.0), "controller_alone")
    slots = work_slots(result)
    assert slots[60:84].min() > slots[216:240].max()
    assert 2 <= result.ledger.rescales.sum() < 30


def test_the_best_constant_is_cheaper_than_every_other_constant() -> None:
    load, conditions = wave(1.0), Conditions(disturbances=UNDISTURBED)
    best = find_best_constant(load, conditions)
    constants = list_constants(load)
    assert (constants == best).all(axis=1).any()
    assert (constants[-1] == find_limits(LINE)).all()
    assert best[1] == 8  # 750/s at 100/s each; lateness costs more than a slot


def test_all_rivals_are_built_and_take_parameters() -> None:
    load = wave(0.1)
    names = list_rivals()
    assert [one.name for one in build_candidates(names, load, Conditions())] == list(names)
    assert build_candidates(["controller_alone"], load, Conditions())[0].asks_in_restarts


def test_a_form_adds_headroom_cadence_and_falls_that_wait() -> None:
    form = CandidateForm("ds2", {"minor_down": 0}, headroom=0.3, scale_down_delay_s=3600, cadence_s=1800)
    result = run(wave(1.0), "ds2", ds2_best=form)
    plain, formed = work_slots(result, 0), work_slots(result, 1)
    assert formed[60:84].mean() > plain[60:84].mean() + 1.0
    assert result.ledger.rescales[:, 1].sum() < result.ledger.rescales[:, 0].sum()
    rescaled = np.flatnonzero(result.ledger.rescales[:, 1])
    assert ((rescaled * 300) % 1800 == 0).all()


def test_headroom_scales_arrivals_alone() -> None:
    recorded: list[float] = []

    class Probe:
        def first_memory(self) -> None:
            return None

        def tick(self, snapshot: Any, memory: None) -> tuple[None, None]:
            observed = scale_arrivals(snapshot.observations(0.5), 1.5)
            if len(observed):
                recorded.append(observed.target_data_rate_per_s[-1, 0] / snapshot.load_per_s["in"])
                assert observed.processing_rate_per_s[-1, 0] == pytest.approx(snapshot.load_per_s["in"])
            return None, None

    driver: Any = Probe()
    ReplayRun(wave(0.1), [CandidatePolicy("probe", driver)], [0], Conditions(disturbances=UNDISTURBED)).run()
    assert recorded == pytest.approx([1.5] * len(recorded))
    assert recorded


def test_capacity_notes_interpolate_what_was_seen() -> None:
    graph = LINE.graph()
    history = (ObservedCapacity(4, (400.0,)), ObservedCapacity(8, (600.0,)))
    notes = CapacityNotes({"in": (ObservedCapacity(1, (1000.0,)),), "work": history}, {"in": 1.0, "work": 1.0})
    limits = find_limits(LINE)
    assert notes.size_job(graph, 500.0, limits) == {"in": 1, "work": 6}
    assert notes.size_job(graph, 1e9, limits) == {"in": 16, "work": 16}
    assert CapacityNotes().size_job(graph, 500.0, limits) is None
