"""The runs that are shipped, and the table of them."""

from __future__ import annotations

from benchmarks.live.results import read_results
from benchmarks.live.tables import format_table, list_against
from include.settings import PROJECT

RESULTS = PROJECT / "benchmarks" / "live" / "results"
RUNS = read_results(RESULTS / "live")


def test_each_is_a_measurement_that_lost_nothing():
    assert RUNS
    for run in RUNS:
        assert run.is_valid
        assert run.records_lost == 0
        assert run.records_in == run.records_due
        assert run.pace == "product"


def test_the_table_is_of_these_runs():
    text = (RESULTS / "live.md").read_text(encoding="utf-8")
    assert format_table(RUNS) in text
    for sentence in list_against(RUNS):
        assert sentence in text
