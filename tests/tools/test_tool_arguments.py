"""Bad arguments of the commands in tools/: one line that says what is expected, exit code 2, no traceback."""

from __future__ import annotations

import pytest
from command_complaints import read_complaint

from tools import mutate_rules, worked_example

CASES = [
    (mutate_rules, ["--every", "0"], "not '0'"),
    (mutate_rules, ["--least", "2"], "not '2'"),
    (worked_example, ["--out", "no/such/folder"], "a folder that is there, not 'no/such/folder'"),
]


@pytest.mark.parametrize(("command", "arguments", "expected"), CASES)
def test_one_line_says_what_is_expected(command, arguments, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # nothing is written into the project
    assert expected in read_complaint(command.main, arguments, capsys)
