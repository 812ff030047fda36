"""Results as files, tables and a page; the simulator beside a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.live.__main__ import main, parse
from benchmarks.live.calibration import Calibration, Vertex
from benchmarks.live.estimate import RunKey, estimate_minutes, list_missing
from benchmarks.live.history import choose_begin, request_history
from benchmarks.live.load_window import LoadWindow
from benchmarks.live.measures import Measures
from benchmarks.live.paired import compare_pairs, format_pairs
from benchmarks.live.report import write_report
from benchmarks.live.results import RunResult, is_done, read_result, result_file, write_result
from benchmarks.live.run import read_prices
from benchmarks.live.simulator import (
    Correction,
    compare_runs,
    count_slots,
    find_correction,
    find_downtime,
    simulate_run,
)
from benchmarks.live.tables import format_table, list_against
from cli.arguments import UsageError
from include.utc import parse_utc
from lab.commands.history import draw_rates
from lab.simulation.catalogue import assemble

MEASURES = Measures(1.0, 4.0, 2, 30.0, 5000.0, 40.0, 60.0, 3.2)
LOAD = [(0, 100.0), (660, 100.0), (661, 0.0), (90_000, 0.0)]
SOURCE, JOIN = "Source: events[1] -> Calc[3]", "Join[7]"
CALIBRATION = Calibration(
    "q3",
    JOIN,
    (Vertex(SOURCE, (), 1.0, 50_000.0), Vertex(JOIN, (SOURCE, SOURCE), 0.2, 10.0)),
    {1: 50.0, 2: 100.0, 4: 200.0, 8: 400.0, 16: 800.0},
    5.0,
)


def made_run(policy: str = "tidewise", seed: int = 1, cpu: float = 0.5, **changes: object) -> RunResult:
    run = RunResult(
        policy=policy,
        job="q3",
        seed=seed,
        minutes=10.0,
        pace="short",
        trace="dsp_alibaba_5min",
        begun="2026-11-27T08:00:00+00:00",
        cpu_share=cpu,
        trouble="",
        slots_max=16,
        lost_at_s=300.0,
        measures=MEASURES,
        records_in=66_000,
        records_due=66_000,
        rows_out=1000,
        rows_expected=1000,
        lines=[(0.0, 100.0, 4, 0.5, 0.0), (10.0, 100.0, 4, 12.5, 300.0)],
        actions=[(1.0, 4)],
        load=LOAD,
        span_s=(60.0, 660.0),
    )
    return replace(run, **changes)


def test_a_result_is_read_as_it_was_written(tmp_path: Path):
    run = made_run()
    assert read_result(write_result(tmp_path, run)) == run


def test_what_was_discarded_or_is_of_another_length_is_made_again(tmp_path: Path):
    write_result(tmp_path, made_run())
    write_result(tmp_path, made_run("none", cpu=0.71))
    write_result(tmp_path, made_run("ds2", trouble="its process ended"))
    keys = [RunKey(name, "q3", 1) for name in ("tidewise", "none", "ds2", "conttune")]
    assert [key.policy for key in list_missing(tmp_path, keys, 10.0, accepts_invalid=False)] == [
        "none",
        "ds2",
        "conttune",
    ]
    assert [key.policy for key in list_missing(tmp_path, keys, 10.0, accepts_invalid=True)] == ["ds2", "conttune"]
    assert not is_done(tmp_path, ("tidewise", "q3", 1), 40.0, accepts_invalid=False)


def test_the_estimate_counts_preparations_calibrations_and_the_build():
    keys = [RunKey("tidewise", "q3", 1), RunKey("none", "q3", 1)]
    assert estimate_minutes(keys, 0, 43.0, 12.0, builds=False) == 2 * 45.5 + 12
    assert estimate_minutes(keys, 1, 43.0, 12.0, builds=True) == 2 * 45.5 + 12 + 14 + 5


def test_lost_records_are_the_rows_that_are_missing_and_not_known_without_a_count():
    assert made_run(rows_out=990).records_lost == 10
    assert made_run(rows_out=1003).records_lost == -3
    assert made_run(rows_out=None, rows_expected=None).records_lost is None
    assert "| not known |" in format_table([made_run(rows_out=None)])


def test_what_is_better_than_tidewise_is_said_by_name():
    cheaper = made_run("flink_autoscaler", measures=replace(MEASURES, cost=3.0, slot_hours=3.5, late_minutes=2.0))
    (sentence,) = list_against([made_run(), cheaper, made_run("none", seed=2)])
    assert sentence.startswith("q3, seed 1: flink_autoscaler has less: cost 3.00, Tidewise 3.20; slot-hours 3.50")
    assert "late minutes" not in sentence
    assert list_against([made_run(), made_run("none")]) == []


def test_table_and_page_say_which_runs_are_no_measurement(tmp_path: Path):
    folder = tmp_path / "live"
    for run in (made_run(), made_run("none", cpu=0.9)):
        write_result(folder, run)
    text = write_report(folder, lambda _: None).read_text()
    assert text.count("<svg") == 2
    assert text.count("no measurement</span>") == 1
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "")
    assert "invalid: processors busy" in (tmp_path / "live.md").read_text()
    with pytest.raises(UsageError, match="no runs"):
        write_report(tmp_path / "nothing", lambda _: None)


def test_report_alone_needs_no_cluster(tmp_path: Path):
    write_result(tmp_path / "live", made_run())
    assert main(["--report", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "live.html").is_file()
    assert main(["--report", "--out", str(tmp_path / "other")]) == 2


def test_options_are_refused_by_name(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        parse(["--policy", "tidewize"])
    assert "invalid choice" in capsys.readouterr().err


def test_capacity_is_interpolated_and_the_least_parallelism_is_chosen():
    assert CALIBRATION.capacity_per_s(6) == 300.0
    assert CALIBRATION.find_parallelism(170.0, 0.85) == 4
    assert CALIBRATION.find_parallelism(10_000.0, 0.85) == 16


def test_more_subtasks_carry_no_less():
    noisy = replace(CALIBRATION, events_per_s={1: 50.0, 2: 100.0, 3: 180.0, 4: 140.0, 5: 250.0})
    assert [noisy.capacity_per_s(one) for one in range(1, 6)] == pytest.approx([50, 100, 160, 160, 250])


def test_the_simulator_repeats_load_actions_and_loss():
    run = made_run()
    calm = simulate_run(replace(run, lost_at_s=None), CALIBRATION, Correction(5.0), read_prices())
    assert (calm.late_minutes, calm.rescales, calm.down_s) == (0.0, 0, 0.0)
    assert calm.slot_hours == pytest.approx(4 * 600 / 3600)
    lost = simulate_run(run, CALIBRATION, Correction(20.0), read_prices())
    assert lost.down_s == pytest.approx(20.0, abs=2.0)
    assert lost.recovery_s is not None
    assert lost.recovery_s > 20.0
    grown = simulate_run(
        replace(run, actions=[(1.0, 4), (400.0, 8)], lost_at_s=None), CALIBRATION, Correction(5.0), read_prices()
    )
    assert grown.rescales == 1
    assert grown.slot_hours > calm.slot_hours


def test_a_rescale_waits_for_a_checkpoint_and_processes_again_what_came_since_its_trigger():
    run = made_run(actions=[(1.0, 4), (400.0, 8)], lost_at_s=None)
    quick = simulate_run(run, CALIBRATION, Correction(5.0), read_prices())
    slow = simulate_run(run, CALIBRATION, Correction(5.0, 30.0), read_prices())
    assert quick.peak_backlog == pytest.approx(100.0 * 6, rel=0.2)
    assert slow.peak_backlog == pytest.approx(100.0 * (5 + 30), rel=0.2)
    assert quick.slot_hours - 60 / 3600 * 4 < slow.slot_hours < quick.slot_hours
    assert find_correction([made_run(checkpoint_s=4.0), made_run(checkpoint_s=8.0)]) == Correction(10.0, 6.0)


def test_a_lost_task_manager_takes_its_slots_along_until_it_is_back():
    assert [count_slots(at, 100.0) for at in (99, 100, 129, 130)] == [16, 8, 8, 16]
    assert count_slots(100, None) == 16
    wide = replace(made_run(), actions=[(1.0, 12)])
    lost = simulate_run(wide, CALIBRATION, Correction(5.0), read_prices())
    assert lost.down_s == pytest.approx(2 * 5.0, abs=2.0)  # with eight slots, and again with twelve
    assert lost.rescales == 0


def test_the_first_seed_corrects_and_others_are_reported(tmp_path: Path):
    runs = [made_run(), made_run(seed=2), made_run("none", trouble="ended")]
    rows = compare_runs(runs, {"q3": CALIBRATION}, read_prices())
    assert [(one.seed, one.use) for one in rows] == [(1, "corrects"), (2, "reports")]
    assert find_downtime(runs[:1]) == 10.0
    assert find_downtime([made_run(lost_at_s=None, measures=replace(MEASURES, rescales=0))]) is None


def test_the_history_ends_where_the_window_begins(tmp_path: Path):
    """The load rises by one a bin: so what the simulated source gets says where in the trace it is."""
    before = np.arange(1.0, 2001.0)
    window = LoadWindow(2000, np.array([2001.0, 2002.0, 2003.0]), before)
    begins = parse_utc("2026-11-27T08:40:00Z")
    request = request_history(CALIBRATION, window, begins, tmp_path, (2, 1))
    jobs = request.jobs()
    (load,) = jobs[0].loads
    quiet = replace(jobs[0], loads=(replace(load, sample_noise=0.0, step_noise=0.0),))
    rates = draw_rates(request, [quiet], assemble([quiet])[0])
    assert request.end == parse_utc("2026-11-27T08:00:00Z")
    assert request.hours == 48
    # At eight o'clock 40 minutes, eight bins, are missing to the window's 2001.
    assert rates[-1, 0, 0] == pytest.approx(2001 - 8, abs=1.0)
    assert rates[0, 0, 0] == pytest.approx(2001 - 8 - 48 * 12, abs=1.0)


def test_a_window_begins_on_a_bin_after_the_stages():
    begins = choose_begin(parse_utc("2026-11-27T08:01:00Z"), 12.0)
    assert begins == parse_utc("2026-11-27T08:15:00Z")
    assert result_file(Path("out/live"), "none", "q3", 2).name == "q3-none-2.json"


def test_differences_are_paired_by_seed_with_an_interval_and_the_dearer_ones_come_first() -> None:
    costs = {"tidewise": (5.0, 7.0, 6.0), "controller_alone": (4.0, 6.5, 4.5), "flink_autoscaler": (9.0, 9.0, 9.0)}
    runs = [
        made_run(policy, seed, measures=replace(MEASURES, cost=cost))
        for policy, each in costs.items()
        for seed, cost in enumerate(each, 1)
    ]
    busy = made_run("controller_alone", 4, cpu=0.9, measures=replace(MEASURES, cost=1.0))
    pairs = {one.policy: one for one in compare_pairs([*runs, busy])}
    alone = pairs["controller_alone"]
    assert alone.seeds == (1, 2, 3)
    assert alone.mean["cost"] == pytest.approx(1.0)
    assert alone.half_width["cost"] == pytest.approx(4.3027 * 0.5 / 3**0.5, rel=1e-3)  # of 1.0, 0.5 and 1.5
    assert pairs["flink_autoscaler"].mean["cost"] == pytest.approx(-3.0)
    lines = format_pairs(pairs.values()).splitlines()
    assert lines[2].startswith("| q3 | Tidewise's controller without history | 3 | +1.00 +-1.24 |")
    assert lines[3].startswith("| q3 | Flink's autoscaler, defaults | 3 | -3.00 ")
    (single,) = compare_pairs([one for one in runs if one.seed == 1 and one.policy != "flink_autoscaler"])
    assert "| 1 | +1.00 |" in format_pairs([single])
