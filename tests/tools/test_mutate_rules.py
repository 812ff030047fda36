"""`make mutate-rules`: which rules are removed and inverted, and that tests are told from those that notice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from include.settings import PROJECT
from tools.mutate_rules import check_types, name_end, read_rule_files, summarise
from tools.rule_breaks import Break, list_breaks

SOURCE = """
def check(case, limits):
    if limits.is_held and case.wants:
        return "held"
    names = [one for one in case.names if one]
    allowed = case.names or []
    return "é" if len(names) > 2 else not allowed


_RULES = (check, len)
"""


def changed(source: str = SOURCE) -> dict[str, str]:
    """Return name of each change -> the lines that it changed."""
    before = source.splitlines()
    result = {}
    for one in list_breaks("f.py", source):
        after = one.source.splitlines()
        assert len(after) == len(before)
        result[one.name] = "\n".join(new.strip() for new, old in zip(after, before, strict=True) if new != old)
        compile(one.source, "f.py", "exec")
    return result


def test_each_condition_and_rule_is_removed_and_inverted() -> None:
    assert changed() == {
        "f.py:3 inverted: limits.is_held and case.wants": "if not (limits.is_held and case.wants):",
        "f.py:3 removed: limits.is_held and case.wants": "if False:",
        "f.py:3 removed: limits.is_held": "if True and case.wants:",
        "f.py:3 removed: case.wants": "if limits.is_held and True:",
        "f.py:5 removed: one": "names = [one for one in case.names if True]",
        "f.py:5 inverted: one": "names = [one for one in case.names if (not (one))]",
        "f.py:6 removed: case.names": "allowed = False or []",
        "f.py:7 removed: len(names) > 2": 'return "é" if False else not allowed',
        "f.py:7 inverted: len(names) > 2": 'return "é" if not (len(names) > 2) else not allowed',
        "f.py:10 removed: check": "_RULES = ((lambda case: None), len)",
        "f.py:10 removed: len": "_RULES = (check, (lambda case: None))",
    }


def test_a_condition_that_is_returned_is_inverted_and_how_a_file_is_used_is_left_alone() -> None:
    source = """
def is_late(at, now):
    return at < now


if __name__ == "__main__":
    is_late(1, 2)
"""
    assert changed(source) == {"f.py:3 inverted: at < now": "return not (at < now)"}


def test_the_files_and_tests_that_are_named_exist() -> None:
    known = read_rule_files()
    assert [one.name for one in known] == ["control", "controller"]
    for one in known:
        assert len(one.files(PROJECT)) > 10
        assert [test for test in one.tests if not (PROJECT / test).is_file()] == []


def test_survivors_are_listed() -> None:
    one, other = (Break("f.py", line, "removed", "x", "") for line in (1, 2))
    assert summarise("control", [(one, "noticed"), (other, "survived")], 3.0) == [
        "control: 1 of 2 changed rules noticed (50.0%) in 3 s",
        "    survived: f.py:2 removed: x",
    ]
    assert name_end(0) == "survived"
    assert name_end(256) == "noticed"
    assert name_end(14) == "noticed by a timeout"
    assert name_end(9) == "noticed by a crash"


@pytest.mark.parametrize(("text", "outcome"), [("1", "survived"), ("None", "noticed by the types")])
def test_what_the_type_checker_refuses_is_noticed(tmp_path: Path, text: str, outcome: str) -> None:
    change = Break("include/version.py", 1, "removed", "x", f"COUNT: int = {text}\n")
    assert check_types(change, tmp_path) == outcome


SCRIPT = """
import json, sys
from tools.mutate_rules import try_all
from tools.rule_breaks import read_breaks
from include.settings import PROJECT
file = "models/control/partial_rise.py"
breaks = [one for one in read_breaks(PROJECT, [file]) if one.what == sys.argv[1]]
for test in sys.argv[2:]:
    said = try_all([test], [None, *breaks], 1)
    print("said", json.dumps([said[0], *([one.kind, outcome] for one, outcome in zip(breaks, said[1:]))]))
"""


def test_a_changed_file_is_what_the_tests_import(tmp_path: Path) -> None:
    """In processes of their own, although the command has imported the file as it is."""
    notices, misses = (tmp_path / f"test_{name}.py" for name in ("notices", "misses"))
    notices.write_text("""
from dataclasses import replace
from control_entries import plain_case
from models.control.partial_rise import fit_rise
from models.control.state import Origin

def test_a_pin_is_not_cut():
    case = plain_case()
    case = replace(case, observed=replace(case.observed, free_slots=1))
    pin = replace(case.desired, origin=Origin.PIN)
    assert fit_rise(pin, case) is pin
""")
    misses.write_text("import models.control.partial_rise\n\n\ndef test_nothing():\n    pass\n")
    what = "wanted.origin is Origin.PIN"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, what, str(notices), str(misses)],
        cwd=PROJECT,
        env={"PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests' / 'support'}", "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    reported = [json.loads(line.removeprefix("said")) for line in done.stdout.splitlines() if line.startswith("said")]
    assert reported == [["survived", ["removed", "noticed"]], ["survived", ["removed", "survived"]]]
