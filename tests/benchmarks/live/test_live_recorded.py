"""The runs that are shipped, and the table of them."""

from __future__ import annotations

from benchmarks.live.publish import RESULTS, format_pages
from benchmarks.live.results import read_results

RUNS = read_results(RESULTS / "live")


def test_each_is_a_measurement_that_lost_nothing():
    assert RUNS
    for run in RUNS:
        assert run.is_valid
        assert run.records_lost == 0
        assert run.records_in is not None
        assert run.records_due is not None
        assert abs(run.records_in - run.records_due) <= 1  # the last is due in the last millisecond
        assert run.pace == "product"


def test_the_pages_are_what_the_command_writes_of_these_runs():
    for path, text in format_pages().items():
        assert path.read_text(encoding="utf-8") == text, 'run make live ARGS="--publish"'
