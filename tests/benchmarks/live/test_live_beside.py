"""Calls of `make live` beside each other in one folder."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.live.__main__ import find_calibration, main
from benchmarks.live.calibration import PARALLELISMS, Calibration, Vertex, list_unmeasured
from cli.out_lock import OutInUseError, hold_folder
from include.atomic_write import write_json


def test_a_run_that_another_call_makes_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with hold_folder(tmp_path, "make live", ".live-q3-none-1.lock"):
        assert main(["--job", "q3", "--policy", "constant", "none", "--out", str(tmp_path)]) == 2
    assert "is in use by `make live`" in capsys.readouterr().err


def test_one_job_at_a_time_is_measured(tmp_path: Path):
    with (
        hold_folder(tmp_path, "make live, which measures a job", ".live-calibration.lock"),
        pytest.raises(OutInUseError, match="measures a job"),
    ):
        find_calibration("q2", tmp_path / "live", print)


@pytest.mark.parametrize("missing", [None, 7])
def test_what_was_measured_is_measured_once_and_what_is_missing_is_added(tmp_path: Path, missing: int | None):
    events = {one: 100.0 * one for one in PARALLELISMS if one != missing}
    known = Calibration("q2", "work", (Vertex("work", (), 1.0, 100.0),), events, 1.0)
    assert list_unmeasured(known) == ([] if missing is None else [missing])
    assert list_unmeasured(None) == list(PARALLELISMS)
    (tmp_path / "live").mkdir()
    write_json(tmp_path / "live" / "calibration-q2.json", asdict(known))
    with hold_folder(tmp_path, "make live, which measures a job", ".live-calibration.lock"):
        if missing is None:
            assert find_calibration("q2", tmp_path / "live", print) == known
        else:
            with pytest.raises(OutInUseError):
                find_calibration("q2", tmp_path / "live", print)


def test_calls_for_other_runs_do_not_wait_for_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with hold_folder(tmp_path, "make live", ".live-q3-none-1.lock"):
        assert main(["--report", "--out", str(tmp_path)]) == 2  # as far as the page, for which no run is there
    assert "no runs below" in capsys.readouterr().err
