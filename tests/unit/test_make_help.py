"""``make`` for somebody who comes first, for one who mistypes, and for one who knows the targets of before."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from cli.arguments import moment
from cli.console import VERBS
from tools.gone_targets import find_command, list_targets
from tools.long_parts import read_parts

REPOSITORY = Path(__file__).resolve().parents[2]
WENT = re.findall(
    r"\S+",
    """
    backtest advise init doctor manifests install import backfill control airflow maintain backup restore status
    page log why plan quarantine undo hold release approve models lift record cluster mutate-rules mutate
    structure compare check-deps test-long-rules test-long-kills test-long-spark test-long-plans test-long-parts
    test-long-clusters test-long-waits test-long-prometheus test-long-live test-long-buckets
    test-long-comparisons test-long-docs test-long-executors test-long-cluster
    """,
)


def run(*words: str, cwd: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)


def make(*words: str) -> subprocess.CompletedProcess[str]:
    return run("make", "--no-print-directory", *words)  # which a make around the tests would switch on


def test_help_is_fifteen_lines_at_most_and_help_all_has_the_rest() -> None:
    first, all_of_them = make("help").stdout, make("help-all").stdout
    assert 10 <= len(first.splitlines()) <= 15
    for command in ("make run", "make test", "./tidewise status", "./tidewise undo"):
        assert f"  {command} " in first
    assert "  make clean " in all_of_them
    assert "  make clean " not in first
    assert len(re.findall(r"^  make ", all_of_them, re.MULTILINE)) == len(list_targets()) <= 25


@pytest.mark.parametrize("target", WENT)
def test_a_target_that_went_names_what_does_its_work(target: str) -> None:
    assert target not in list_targets()
    program, *words = (find_command(target) or "").split()
    if program == "./tidewise":
        assert words[0] in VERBS
    elif program == "make":
        assert " ".join(words) in read_parts()
    else:
        assert (program, words[0]) == (".venv/bin/python", "-m")
        assert find_spec(words[1])


def test_make_itself_says_so_with_the_arguments() -> None:
    done = make("why", "ARGS=prod/orders --at '03:00'")
    assert done.returncode != 0
    assert "make why went; type: ./tidewise why prod/orders --at '03:00'" in done.stderr


def test_nothing_names_a_target_that_went() -> None:
    pattern = rf"\bmake ({'|'.join(WENT)})(?![a-z-])"
    others = (":!CHANGELOG.md", ":!data/.recording_sql.lock", ":!tests/unit/test_make_help.py")
    done = run("git", "grep", "-nP", pattern, "--", ".", *others)
    assert (done.returncode, done.stdout + done.stderr) == (1, "")


def test_a_verb_is_typed_in_any_folder(tmp_path: Path) -> None:
    done = run(str(REPOSITORY / "tidewise"), "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout[:9]) == (0, "tidewise ")
    shutil.copy(REPOSITORY / "tidewise", tmp_path)
    done = run("./tidewise", "status", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "tidewise: nothing is installed: run make setup\n")


def test_a_misspelt_target_is_answered_with_near_names() -> None:
    done = make("stauts")
    assert done.returncode != 0
    assert "there is no target 'stauts'; did you mean ./tidewise status" in done.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2026-11-31", "November 2026 has 30 days"),
        ("2026-02-29T10:00:00Z", "February 2026 has 28 days"),
        ("2026-13-01", "there is no month 13"),
        ("soon", "expected a time such as"),
        ("2026-11-20T25:00:00Z", "expected a time such as"),
    ],
)
def test_a_date_that_does_not_exist_is_told_from_one_that_cannot_be_read(text: str, why: str) -> None:
    with pytest.raises(Exception, match=why):
        moment(text)
