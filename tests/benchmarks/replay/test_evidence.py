"""The published evidence: what is replayed, fingerprints, rows that are refused, classes of load, the frontier."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.replay.best_forms import read_forms
from benchmarks.replay.cost_rows import write_costs
from benchmarks.replay.cost_summary import DEFAULT
from benchmarks.replay.evidence.fingerprints import (
    SITUATIONS,
    compute_fingerprint,
    read_fingerprints,
    refresh_fingerprints,
)
from benchmarks.replay.evidence.frontier_curves import build_equal_lateness, interpolate_slot_hours
from benchmarks.replay.evidence.frontier_forms import LATE_FACTORS, list_frontier
from benchmarks.replay.evidence.load_classes import measure_load
from benchmarks.replay.evidence.publish import FIGURE, PAGE, format_pages, read_classes
from benchmarks.replay.evidence.published_costs import COSTS, StaleRowsError, read_published, select_study
from benchmarks.replay.evidence.studies import JOB, Study, Unit, list_forms, read_studies
from benchmarks.replay.evidence.study_tables import build_readme_table, build_segments
from benchmarks.replay.evidence.unit_case import build_case
from benchmarks.replay.evidence.unit_rows import join_units, place_file, read_rows, restore_units, run_unit
from benchmarks.replay.replay_candidates import build_candidates, check_names
from benchmarks.replay.replay_cases import Row, replay_case
from benchmarks.replay.replay_jobs import read_job
from benchmarks.replay.split import TRACES, Piece, read_piece, read_split
from benchmarks.replay.synthetic_loads import draw_load
from fleet.frontier import FrontierPoint
from include.settings import Planner


def build_row(policy: str, cost: float, **changed: str | float) -> Row:
    """Return a row of a replay."""
    row: Row = {
        "trace": "t",
        "job": "wordcount",
        "policy": policy,
        "seed": 0,
        "segment": "after_first_day",
        "days": 8.0,
    }
    row |= {"cost": cost, "slot_hours": 7.0 * cost, "late_minutes_per_day": 1.0, "rescales_per_day": 2.0, "bound": None}
    return {**row, "fingerprint": f"of {policy}", **changed}


def test_the_published_rows_are_of_what_policies_decide_today() -> None:
    rows = read_published(read_fingerprints())
    assert {str(row["policy"]) for row in rows} >= {DEFAULT, "planner", "controller_alone", "bound", "clairvoyant"}
    first = SITUATIONS[:1]
    for policy in (DEFAULT, "flink_autoscaler_tuned"):
        known = read_fingerprints()[policy].split("-")[0]
        assert compute_fingerprint(policy, first) == known, (
            f"{policy} decides otherwise than in the published tables: python -m benchmarks.replay.evidence"
        )


def test_another_decision_makes_another_fingerprint() -> None:
    first = SITUATIONS[1:2]
    assert compute_fingerprint("ds2", first) == compute_fingerprint("ds2", first)
    assert compute_fingerprint("ds2", first) != compute_fingerprint("ds2_best", first)


def test_rows_from_before_a_change_of_decisions_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "costs.csv"
    write_costs([build_row("ds2", 3.0), build_row("mdp", 4.0)], path)
    assert len(read_published({"ds2": "of ds2", "mdp": "of mdp"}, path)) == 2
    with pytest.raises(StaleRowsError, match="rows of mdp from before"):
        read_published({"ds2": "of ds2", "mdp": "another"}, path)


def test_fingerprints_are_computed_once_for_one_state_of_the_code(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def compute(names: list[str]) -> dict[str, str]:
        asked.append(list(names))
        return {name: name.upper() for name in names}

    cache = tmp_path / "fingerprints.json"
    assert refresh_fingerprints(["a", "b"], cache, compute) == {"a": "A", "b": "B"}
    assert refresh_fingerprints(["b", "c"], cache, compute) == {"b": "B", "c": "C"}
    cache.write_text(json.dumps({"sources": "of yesterday", "fingerprints": {"a": "old"}}))
    assert refresh_fingerprints(["a"], cache, compute) == {"a": "A"}
    assert asked == [["a", "b"], ["c"], ["a"]]


def test_the_tables_are_what_the_command_writes_and_of_the_default_of_the_settings() -> None:
    for path, text in format_pages().items():
        assert path.read_text() == text, "run python -m benchmarks.replay.evidence --publish"
    assert Planner().policy == DEFAULT
    assert FIGURE.is_file() or FIGURE.name not in PAGE.read_text()


def test_every_policy_and_load_of_the_studies_is_known() -> None:
    studies = read_studies()
    check_names([name for study in studies.values() for name in study.policies], list_forms())
    assert studies["test"].traces == read_split("test").traces
    assert set(read_forms()) <= set(studies["test"].policies)
    assert set(read_classes()) == {trace for study in studies.values() for trace in study.traces}


def test_every_point_of_the_frontier_decides_with_its_own_weight() -> None:
    names = tuple(list_frontier())
    unit = Unit(*SITUATIONS[0], JOB, 1.0, (0,), names[0])
    case = build_case(unit, list_forms())
    workload = read_job(JOB).build_workload(case.trace, case.conditions.cadence.step_s)
    assert [one.name for one in build_candidates(names, workload, case.conditions, case.forms)] == list(names)
    cheap, prompt = (f"programme@late x{factor:g}" for factor in (LATE_FACTORS[0], LATE_FACTORS[-1]))
    slots = replay_case(replace(case, policies=(cheap, prompt))).slots
    assert slots[prompt].sum() > slots[cheap].sum()


def test_a_unit_that_has_run_is_not_run_again_unless_its_decisions_or_seeds_changed(tmp_path: Path) -> None:
    unit = Unit("dsp_taxi_5min", "", "wordcount", 1.0, (0,), "static_max")
    assert read_rows(unit, tmp_path, "f") is None
    assert run_unit(unit, tmp_path, "f", TRACES) == len(json.loads(place_file(unit, tmp_path).read_text()))
    assert read_rows(unit, tmp_path, "f")
    assert read_rows(unit, tmp_path, "g") is None
    assert read_rows(Unit("dsp_taxi_5min", "", "wordcount", 1.0, (0, 1), "static_max"), tmp_path, "f") is None


def test_what_is_published_with_todays_decisions_has_run_and_makes_the_same_file(tmp_path: Path) -> None:
    published, known = read_published(read_fingerprints()), read_fingerprints()
    units = join_units([unit for study in read_studies().values() for unit in study.list_units()])
    assert restore_units(units, published, tmp_path, {**known, "programme": "another"}) > 0
    assert restore_units(units, published, tmp_path, known) > 0, "of the default, whose decisions are these"
    assert restore_units(units, published, tmp_path, known) == 0, "a second time nothing is missing"
    rows: list[Row] = []
    for unit in sorted(units, key=str):
        rows += read_rows(unit, tmp_path, known.get(unit.policy, "")) or []
    write_costs(rows, tmp_path / "costs.csv")
    assert (tmp_path / "costs.csv").read_bytes() == COSTS.read_bytes()


def test_units_of_several_studies_run_once_with_the_seeds_of_all() -> None:
    units = [Unit("t", "", "wordcount", 8.0, seeds, "ds2") for seeds in ((0, 1), (1, 2))]
    assert join_units(units) == [Unit("t", "", "wordcount", 8.0, (0, 1, 2), "ds2")]


def test_a_policy_that_has_not_run_everywhere_is_in_no_table() -> None:
    study = Study("s", "about", ("t", "u"), ("",), ("wordcount",), 8.0, (0,), ("ds2", "mdp"))
    rows = [build_row("ds2", 3.0), build_row("ds2", 3.0, trace="u"), build_row("mdp", 4.0)]
    assert {row["policy"] for row in select_study(rows, study)} == {"ds2"}


def test_the_readme_has_each_rival_in_its_cheaper_form() -> None:
    rows = [
        build_row("bound", 2.0, bound=2.0),
        build_row(DEFAULT, 3.0),
        build_row("ds2", 8.0),
        build_row("ds2_best", 5.0),
    ]
    compared = [{**row, "cost_vs_bound": float(str(row["cost"])) / 2.0} for row in rows]
    lines = build_readme_table(compared)[1:]
    assert [(line[0], line[1]) for line in lines[1:]] == [("DS2, best form", "2.500")]
    assert lines[0][1:] == ["1.500", "1.00", "2.0", "1.0"]


def test_the_default_is_compared_with_the_cheaper_of_our_others_seed_by_seed() -> None:
    rows = [build_row(DEFAULT, cost, seed=seed) for seed, cost in ((0, 10.0), (1, 12.0))]
    rows += [build_row("planner", cost, seed=seed) for seed, cost in ((0, 20.0), (1, 8.0))]
    rows += [build_row("controller_alone", cost, seed=seed) for seed, cost in ((0, 10.0), (1, 30.0))]
    line = build_segments(rows, {"t": "rough"})[1]
    assert line == ["t", "rough", "-", f"{1.5**0.5:.3f} (1.500)", "-"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("synthetic_squares_40min", "squares"), ("synthetic_spikes", "spikes"), ("synthetic_white_noise", "rough")],
)
def test_synthetic_loads_have_the_class_that_they_are_made_for(name: str, kind: str) -> None:
    assert measure_load(draw_load(name).cut_days(8.0).values).name == kind


def test_a_day_that_comes_again_is_regular_and_one_that_begins_within_an_hour_a_ramp() -> None:
    assert measure_load(read_piece(Piece("dsp_wiki_de_5min", 0, 0)).cut_days(8.0).values).name == "regular"
    hours = np.arange(8 * 288) / 12 % 24
    sawtooth = np.where(hours < 8, 20.0, 100.0 - 80.0 * (hours - 8) / 16)
    assert measure_load(sawtooth).name == "ramps"


def test_slot_hours_at_equal_late_minutes_go_by_the_cheapest_points_that_are_as_punctual() -> None:
    curve = [
        FrontierPoint("a", 100.0, 2.0, 1.0),
        FrontierPoint("b", 120.0, 4.0, 1.0),
        FrontierPoint("c", 80.0, 10.0, 1.0),
    ]
    assert interpolate_slot_hours(curve, 1.9) is None
    assert interpolate_slot_hours(curve, 2.0) == 100.0
    assert interpolate_slot_hours(curve, 6.0) == 90.0  # the dearer and later point b is left out
    assert interpolate_slot_hours(curve, 99.0) == 80.0


def test_the_frontier_compares_with_the_best_rival_that_is_as_punctual() -> None:
    points = {f"{DEFAULT}@late x1": (50.0, 5.0), "ds2_best@+0%": (60.0, 4.0), "mdp@+0%": (10.0, 90.0)}
    points |= {"controller_alone@70% used": (80.0, 3.0)}
    rows = [
        build_row(name, 1.0, slot_hours=7.0 * hours, late_minutes_per_day=late)
        for name, (hours, late) in points.items()
    ]
    cells = build_equal_lateness(rows, {"all": ["t"]})
    assert cells[1] == ["all", "5.0", "50", "ds2_best", "0.833", "0.625"]
