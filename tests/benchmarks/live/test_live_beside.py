"""Calls of `make live` beside each other in one folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.live.__main__ import find_calibration, main
from cli.out_lock import OutInUseError, hold_folder


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


def test_calls_for_other_runs_do_not_wait_for_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with hold_folder(tmp_path, "make live", ".live-q3-none-1.lock"):
        assert main(["--report", "--out", str(tmp_path)]) == 2  # as far as the page, for which no run is there
    assert "no runs below" in capsys.readouterr().err
