"""``tools.mutate_rules``: which rules are removed and inverted, and that tests are told from those that notice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from include.settings import PROJECT
from tools.mutate_rules import read_rule_files, share_noticed
from tools.rule_breaks import Break, list_breaks, read_breaks
from tools.rule_trials.outcomes import OutcomeFile, list_wrong_equivalents, read_equivalents, summarise
from tools.rule_trials.trial_process import Trial, name_end, run_trials, say
from tools.rule_trials.type_check import is_refused_by_types

SOURCE = """
def check(case, limits):
    if limits.is_held and case.wants:
        return "held"
    names = [one for one in case.names if one]
    allowed = case.names or []
    return "é" if len(names) > 2 else not allowed


_RULES = (check, len)
"""


def changed(source: str = SOURCE, *, is_arithmetic: bool = False) -> dict[str, str]:
    """Return name of each change -> the lines that it changed."""
    before = source.splitlines()
    result = {}
    for one in list_breaks("f.py", source, is_arithmetic=is_arithmetic):
        after = one.source.splitlines()
        assert len(after) == len(before)
        result[one.name] = "\n".join(new.strip() for new, old in zip(after, before, strict=True) if new != old)
        compile(one.source, "f.py", "exec")
    return result


def test_of_arithmetic_operators_and_numbers_are_changed_as_well() -> None:
    source = "def half(x: int | None) -> str:\n    y = (x + 1) * x if x < 2 <= 3 else -x\n    return f'{y / 2:.1f} a'\n"
    assert {name: line for name, line in changed(source, is_arithmetic=True).items() if "changed" in name} == {
        "f.py:2 changed: (x + 1) * x": "y = ((x + 1) / x) if x < 2 <= 3 else -x",
        "f.py:2 changed: x + 1": "y = ((x - 1)) * x if x < 2 <= 3 else -x",
        "f.py:2 changed: 1": "y = (x + (1 + 1)) * x if x < 2 <= 3 else -x",
        "f.py:2 changed: x < 2 <= 3": "y = (x + 1) * x if (x <= 2 <= 3) else -x",
        "f.py:2 changed: 2": "y = (x + 1) * x if x < (2 + 1) <= 3 else -x",
        "f.py:2 changed: 3": "y = (x + 1) * x if x < 2 <= (3 + 1) else -x",
    }
    assert not [name for name in changed(source) if "changed" in name]


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
    of_arithmetic = ["capacity", "calibration", "scheduling", "value_rules"]
    assert [one.name for one in known] == ["control", "controller", *of_arithmetic]
    assert [one.name for one in known if one.is_arithmetic] == of_arithmetic
    for one in known:
        assert len(one.files(PROJECT)) == len(one.sources) if one.is_arithmetic else len(one.files(PROJECT)) > 10
        assert [test for test in one.tests if not (PROJECT / test).is_file()] == []


def make_break(line: int, what: str = "x") -> Break:
    return Break("f.py", line, line, "check", "removed", what, f"source {line}")


def test_survivors_are_listed_but_for_those_that_make_no_difference() -> None:
    breaks = [make_break(line, what) for line, what in enumerate("xyzzz", 1)]
    outcomes = ["noticed by a test", "survived", "survived", "noticed by a test", "noticed by the types"]
    tried = list(zip(breaks, outcomes, strict=True))
    assert summarise("control", tried, {"f.py check removed: y": "because"}) == [
        "control: 3 of 4 changed rules noticed (75.0%); 1 more are listed as equivalent",
        "    2 noticed by a test",
        "    1 noticed by the types",
        "    survived: f.py:3 removed: z",
    ]
    assert share_noticed(tried, {"f.py check removed: y": "because"}) == 0.75
    wrong = ["f.py check removed: x", "f.py check removed: gone"]
    assert list_wrong_equivalents(tried, ["f.py check removed: y", *wrong, "g.py f removed: x"], ["f.py"]) == wrong


def test_what_is_listed_as_equivalent_is_a_change_and_has_a_reason() -> None:
    places = {one.place for group in read_rule_files() for one in read_breaks(PROJECT, group.files(PROJECT))}
    equivalents = read_equivalents()
    assert set(equivalents) - places == set()
    assert all(len(why) > 20 for why in equivalents.values())


def test_the_end_of_a_process_says_what_noticed() -> None:
    assert [name_end(status) for status in (0, 256, signal.SIGXCPU, signal.SIGSEGV, 70 << 8)] == [
        "missed by the tests",
        "noticed by a test",
        "noticed by a time limit",
        "noticed by a crash",
        "could not be tried",
    ]


def test_a_process_that_does_not_end_is_ended_and_what_it_says_is_reported() -> None:
    def loop() -> bool:
        while True:
            pass

    def wait() -> bool:
        time.sleep(60)
        return False

    def notice() -> bool:
        say("tests/test_x.py::test_y")
        return True

    reported: dict[str, tuple[str, str]] = {}
    trials = [Trial("loops", loop, 1, 60), Trial("waits", wait, 60, 0.2), Trial("notices", notice, 60, 60)]
    run_trials(trials, 2, lambda name, outcome, said: reported.update({name: (outcome, said)}))
    assert reported == {
        "loops": ("noticed by a time limit", ""),
        "waits": ("noticed by a time limit", ""),
        "notices": ("noticed by a test", "tests/test_x.py::test_y"),
    }


def test_an_outcome_counts_until_the_rule_or_the_test_that_noticed_changes(tmp_path: Path) -> None:
    for name in ("test_one.py", "test_two.py"):
        (tmp_path / name).write_text("")
    tests, file = ["test_one.py", "test_two.py"], tmp_path / "out" / "rules.jsonl"
    noticed, survivor = make_break(1), make_break(2)
    written = OutcomeFile(file, tmp_path, tests)
    written.add(noticed, "noticed by a test", "test_one.py::test_a")
    written.add(survivor, "survived", "")
    assert set(OutcomeFile(file, tmp_path, tests).read()) == {noticed.key, survivor.key}
    (tmp_path / "test_two.py").write_text("def test_b(): pass")
    assert set(OutcomeFile(file, tmp_path, tests).read()) == {noticed.key}
    (tmp_path / "test_one.py").write_text("def test_a(): pass")
    assert OutcomeFile(file, tmp_path, tests).read() == {}


@pytest.mark.parametrize(("text", "is_refused"), [("1", False), ("None", True)])
def test_what_the_type_checker_refuses_is_noticed(tmp_path: Path, text: str, is_refused: bool) -> None:
    change = Break("include/version.py", 1, 1, "", "removed", "x", f"COUNT: int = {text}\n")
    assert is_refused_by_types(change, tmp_path) is is_refused


SMALL = {
    "models/__init__.py": "",
    "models/rules.py": """
SIZES = [one for one in (1, 2, 0) if one]


def allow(count):
    if count > 2:
        return False
    return count != 1


def never_asked(count):
    return count > 3
""",
    "tests/test_rules.py": """
from models.rules import SIZES, allow


def test_large():
    assert not allow(3)


def test_small():
    assert allow(2)


def test_sizes():
    assert SIZES == [1, 2]


def test_not_executed():
    assert SIZES
""",
}
SCRIPT = """
import json, sys
from pathlib import Path
from tools.rule_breaks import read_breaks
from tools.rule_trials.trying import Trials
root = Path(sys.argv[1])
files = ["models/rules.py"]
breaks = read_breaks(root, files)
for again in range(2):
    done = Trials(root, files, ["tests/test_rules.py"], 2).run(breaks, is_anew=False)
    print("said", json.dumps([[one.name, done[one.key].outcome, done[one.key].test] for one in breaks]))
"""


def test_each_change_is_shown_to_the_tests_that_execute_it(tmp_path: Path) -> None:
    """Also one of a condition that is asked at import; what no test executes is missed."""
    for name, text in SMALL.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\npythonpath = .\nmarkers = long\naddopts = --import-mode=importlib\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(PROJECT), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    reported = [json.loads(line.removeprefix("said")) for line in done.stdout.splitlines() if line.startswith("said")]
    test = "tests/test_rules.py::test_"
    outcomes = {name.removeprefix("models/rules.py:"): (outcome, test) for name, outcome, test in reported[0]}
    either = outcomes["6 inverted: count > 2"]
    assert outcomes == {
        "2 inverted: one": ("noticed by a test", f"{test}sizes"),
        "2 removed: one": ("noticed by a test", f"{test}sizes"),
        "6 inverted: count > 2": ("noticed by a test", either[1]),
        "6 removed: count > 2": ("noticed by a test", f"{test}large"),
        "8 inverted: count != 1": ("noticed by a test", f"{test}small"),
        "12 inverted: count > 3": ("survived", ""),
    }
    assert reported[1] == reported[0]
    assert "6 of 6 tried" in done.stdout
