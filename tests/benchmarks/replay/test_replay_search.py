"""The split, the search for best forms, its files, scenarios and paired intervals."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import optuna
import pytest

from benchmarks.replay import cost_summary, tuning
from benchmarks.replay.best_forms import BestForm, read_forms, read_found, write_found
from benchmarks.replay.cost_rows import compare_costs
from benchmarks.replay.paired_intervals import compute_ratio
from benchmarks.replay.replay_candidates import build_candidates
from benchmarks.replay.replay_jobs import read_job
from benchmarks.replay.replay_traces import DAY_BINS, Trace, TraceError
from benchmarks.replay.rivals.rival_options import CandidateForm
from benchmarks.replay.scenarios import SCENARIOS
from benchmarks.replay.search_spaces import SPACES
from benchmarks.replay.split import TRACES, Piece, SplitSide, read_piece, read_split
from benchmarks.replay.synthetic_loads import SYNTHETIC
from lab.replay.conditions import Conditions
from lab.replay.workload import find_sufficient
from models.arrays import Floats

MONDAY = 1_709_510_400  # 2024-03-04 00:00 UTC


def trace(days: int = 4) -> Trace:
    at = np.arange(days * DAY_BINS)
    return Trace("wave", MONDAY, 100.0 + 50.0 * np.sin(2 * np.pi * at / DAY_BINS), ())


def test_tuning_and_test_share_neither_traces_nor_seeds() -> None:
    sides = read_split("tuning"), read_split("test")
    traces, seeds = [set(side.traces) for side in sides], [set(side.seeds) for side in sides]
    assert not traces[0] & traces[1]
    assert not seeds[0] & seeds[1]
    assert all((*traces, *seeds))


def test_six_traces_are_for_test_whole_and_every_other_one_is_for_tuning() -> None:
    test, tuning_side = read_split("test"), read_split("tuning")
    assert set(test.traces) == {"mentions", "nasa", "tweets", "worldcup_may", "internet_eu", "internet_uk"}
    assert all((piece.from_day, piece.days) == (0, 0) for piece in test.pieces)
    shipped = {path.name.split(".")[0] for path in TRACES.glob("*.csv*")}
    assert shipped <= set(tuning_side.traces)
    assert not set(SYNTHETIC) & set(test.traces)


def test_a_piece_is_cut_from_its_day_and_a_missing_trace_is_named() -> None:
    whole = read_piece(Piece("dsp_taxi_5min", 0, 0))
    part = read_piece(Piece("dsp_taxi_5min", 3, 2))
    assert part.start_s == whole.start_s + 3 * 86400
    assert (part.values == whole.values[3 * DAY_BINS : 5 * DAY_BINS]).all()
    with pytest.raises(TraceError, match="unseen"):
        read_piece(Piece("nothing", 0, 1), (Path(),))
    with pytest.raises(TraceError, match="not all there"):
        read_piece(Piece("dsp_alibaba_5min", 6, 3))


def test_every_space_gives_forms_that_can_be_built() -> None:
    workload = read_job("wordcount").build_workload(trace(1), 10)
    for name, suggest in SPACES.items():
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
        forms = [suggest(study.ask()) for _ in range(5)]
        assert {form.base for form in forms} == {name}
        assert len({str(form) for form in forms}) > 1
        for form in forms:
            build_candidates(["tried"], workload, Conditions(), {"tried": form})


def test_a_search_tries_the_own_form_first_keeps_the_best_and_repeats_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "compute_trial_cost", lambda form, side, unseen: 1.0 + form.headroom)
    side = SplitSide((), ())
    name, tried = tuning.search_form("ds2", 4, side, Path())
    assert name == "ds2"
    assert tried[0].form == CandidateForm("ds2")
    assert [one.form for one in tried] == [one.form for one in tuning.search_form("ds2", 4, side, Path())[1]]
    best = tuning.choose_best(tried)
    assert (best.form, best.trials, best.cost_own, best.cost_best) == (CandidateForm("ds2"), 4, 1.0, 1.0)


def test_a_trial_costs_what_comes_after_the_first_day() -> None:
    rows: list[dict[str, str | int | float | None]] = [
        {"policy": "a", "seed": 0, "segment": "all", "cost": 10.0},
        {"policy": "a", "seed": 0, "segment": "first_day", "cost": 4.0},
    ]
    assert tuning.compute_later_cost(rows, "a", 0) == 6.0
    with pytest.raises(KeyError):
        tuning.compute_later_cost(rows, "b", 0)


def test_found_forms_and_trials_are_read_as_they_were_written(tmp_path: Path) -> None:
    nested = {"thresholds": {"decision": 0.1}, "rule": "logged", "flag": True, "costs.late": 2.0}
    result = {
        "b": BestForm(CandidateForm("b", nested, 0.15, 3600, 600), 8, 2.0, 1.5),
        "a": BestForm(CandidateForm("a"), 8, 1.0, 1.0),
    }
    path = tmp_path / "best.toml"
    write_found(result, path)
    assert read_found(path) == result
    assert set(read_forms(path)) == {"a_best", "b_best"}
    assert read_forms(tmp_path / "none.toml") == {}
    trials = tmp_path / "trials.csv"
    for cost in (2.0, 3.0):  # the second replaces the first
        tuning.write_trials("b", [tuning.TriedForm(0, cost, 1.0, result["b"].form)], trials)
    tuning.write_trials("a", [tuning.TriedForm(0, 1.0, 1.0, result["a"].form)], trials)
    with trials.open(newline="") as file:
        assert [row[:3] for row in csv.reader(file)][1:] == [["a", "0", "1.0000"], ["b", "0", "3.0000"]]


def test_the_best_forms_that_are_published_can_be_built() -> None:
    workload, forms = read_job("wordcount").build_workload(trace(1), 10), read_forms()
    assert [one.name for one in build_candidates(tuple(forms), workload, Conditions(), forms)] == list(forms)


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("level_change", lambda old, new: np.allclose(new[-10:], 1.8 * old[-10:]) and np.allclose(new[:10], old[:10])),
        ("growth", lambda old, new: np.isclose(new[-1], 3 * old[-1]) and np.isclose(new[0], old[0])),
        ("flash_crowd", lambda old, new: np.isclose(new.max(), 1.5 * old.max()) and (new != old).sum() < 30),
        ("new_job", lambda old, new: len(new) == 26 * 12 and (new == old[72 : 72 + 26 * 12]).all()),
    ],
)
def test_scenarios_change_the_load(name: str, holds: Callable[[Floats, Floats], bool]) -> None:
    old, new = trace(), SCENARIOS[name].apply(name, trace())
    assert holds(old.values, new.values)
    assert new.name == f"wave+{name}"


def test_saturation_needs_more_than_all_slots_at_the_peak() -> None:
    job = read_job("wordcount")
    scenario = SCENARIOS["saturation"]
    full = job.build_workload(trace(1), 10, 1.0).rates_per_s
    over = job.build_workload(trace(1), 10, scenario.peak_share).rates_per_s
    assert over.max() == pytest.approx(1.1 * full.max())
    assert find_sufficient(job.spec, full.max(axis=0), 1.0).max() == job.spec.slots_max


def test_scenarios_change_what_happens_to_the_job() -> None:
    assert [SCENARIOS[f"failures_{n}"].disturbances.failures_per_day for n in (0, 1, 5)] == [0, 1, 5]
    assert SCENARIOS["downtime_10min"].disturbances.rescale_downtime_s == (600.0, 600.0)
    assert SCENARIOS["downtime_10s"].disturbances.failure_downtime_s == 60.0
    assert SCENARIOS["downtime_45s"].disturbances.rescale_downtime_s == (45.0, 45.0)
    assert [SCENARIOS[f"slots_{s}s"].disturbances.slots_wait_s for s in (0, 60, 180, 600)] == [0, 60, 180, 600]
    assert [SCENARIOS[f"checkpoint_{s}s"].disturbances.checkpoint_interval_s for s in (60, 180)] == [60, 180]
    assert SCENARIOS["at_once"].disturbances.is_at_once
    assert not SCENARIOS["slots_0s"].disturbances.is_at_once


def test_a_ratio_that_is_the_same_everywhere_has_no_width() -> None:
    planner = {(name, seed): 10.0 + seed for name in "abc" for seed in range(3)}
    ratio = compute_ratio({pair: 2 * cost for pair, cost in planner.items()}, planner)
    assert (ratio.mean, ratio.low, ratio.high) == pytest.approx((2.0, 2.0, 2.0))
    assert not ratio.is_cheaper


def test_an_interval_is_as_wide_as_the_traces_differ() -> None:
    planner = {(name, seed): 10.0 for name in "abcd" for seed in range(2)}
    costs = {(name, seed): 10.0 * (0.5 if name < "c" else 1.5) for name, seed in planner}
    ratio = compute_ratio(costs, planner)
    assert (ratio.low, ratio.high) == pytest.approx((0.5, 1.5))
    assert ratio.is_cheaper
    with pytest.raises(ValueError, match="no trace"):
        compute_ratio({}, planner)


def test_the_table_is_bold_where_a_rival_is_cheaper_than_the_default() -> None:
    rows: list[dict[str, str | int | float | None]] = []
    for policy, cost in (("programme", 10.0), ("cheap", 9.0), ("dear", 20.0), ("clairvoyant", 8.0)):
        for segment, share in (("all", 1.0), ("after_first_day", 0.75)):
            row = {"trace": "t", "job": "j", "policy": policy, "seed": 0, "segment": segment, "cost": cost * share}
            rates = {"rescales_per_day": 1.0, "late_minutes_per_day": 2.0, "slot_hours": 2.0 * cost}
            rows.append({**row, **rates})
    cells = cost_summary.summarise(compare_costs(rows))
    assert [row[0] for row in cells[1:]] == ["clairvoyant", "**cheap**", "**programme**", "dear"]
    assert cells[2][1:5] == ["**-**", "**1.000**", "**1.125**", "**0.900**"]
    assert cells[4][3] == "2.500"
    assert cells[4][6] == "2.000"
