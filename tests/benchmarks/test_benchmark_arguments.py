"""Bad arguments of the commands in benchmarks/: one line that says what is expected, exit code 2, no traceback."""

from __future__ import annotations

import pytest
from command_complaints import read_complaint

import benchmarks.__main__ as bench
import benchmarks.conformance.__main__ as conformance
import benchmarks.events.__main__ as events
import benchmarks.papers.__main__ as papers
import benchmarks.replay.__main__ as replay
from benchmarks.forecasting import traces as forecasting_traces
from benchmarks.replay import unseen

CASES = [
    (bench, ["speed"], "no such benchmark: speed; choose from training"),
    (papers, ["--paper", "ds3"], "no such paper: ds3; choose from ds2"),
    (replay, ["--seeds", "0"], "a whole number of 1 or more, not '0'"),
    (replay, ["--days", "-1"], "a number above 0 and up to 36600, not '-1'"),
    (replay, ["--trace", "no/such/file.csv"], "no/such/file.csv"),
    (events, ["--seeds", "0"], "a whole number of 1 or more, not '0'"),
    (events, ["--trace", "mentions"], "choose from"),
    (unseen, ["no/such/folder", "out"], "a folder that is there, not 'no/such/folder'"),
    (forecasting_traces, ["--trace", "no/such/file.csv"], "a file that is there, not 'no/such/file.csv'"),
    (conformance, ["--kind", "ds9", "--cases", "x"], "choose from"),
]


@pytest.mark.parametrize(("command", "arguments", "expected"), CASES)
def test_one_line_says_what_is_expected(command, arguments, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # nothing is written into the project
    assert expected in read_complaint(command.main, arguments, capsys)


def test_papers_are_not_written_below_a_file(capsys, tmp_path):
    (tmp_path / "file").write_text("kept")
    for place in (tmp_path / "file", tmp_path / "file" / "sub" / "out"):
        line = read_complaint(papers.main, ["--out", str(place)], capsys)
        assert "argument --out" in line
        assert str(tmp_path / "file") in line
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize(("command", "option"), [(bench, "--json"), (replay, "--json"), (events, "--json")])
def test_a_folder_is_no_file_to_write(command, option, capsys, tmp_path):
    line = read_complaint(command.main, [option, str(tmp_path)], capsys)
    assert f"argument {option}: expected a file to write" in line
