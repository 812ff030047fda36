"""Each promise of docs/reliability.md has tests that exist, and a command that runs them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from include.settings import PROJECT
from tools.promises import HandRun, list_nightly, read_promises, read_runs, targets_of
from tools.record_run import record_run
from tools.reliability_doc import format_promises

PROMISE = '[[promise]]\ntext = "nothing is lost"\ntests = [{}]\nnot_checked = ""\n'


def test_each_promise_has_a_test_that_a_target_runs() -> None:
    promises = read_promises()
    assert len(promises) >= 13
    for promise in promises:
        assert [target for test in promise.tests for target in targets_of(test)], promise.text


@pytest.mark.parametrize(
    ("test", "targets"),
    [
        ("tests/unit/test_leases.py::test_two_processes_never_hold_it_at_once", ("check",)),
        ("tests/unit/test_controller_stateful.py", ("check",)),
        ("tests/spark/test_plan.py", ("test",)),
        ("tests/fuzz/test_fuzz.py", ("test-long PART=spark",)),
        ("tests/spark/test_stages_survive_kills.py", ("test", "test-long PART=kills")),
    ],
)
def test_a_target_is_known_by_the_place_of_a_test_and_its_mark(test: str, targets: tuple[str, ...]) -> None:
    assert targets_of(test) == targets


def test_a_promise_without_a_test_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "promises.toml"
    path.write_text(PROMISE.format(""))
    with pytest.raises(ValueError, match="no test checks: nothing is lost"):
        read_promises(path)


@pytest.mark.parametrize("test", ["tests/unit/test_nothing.py", "tests/unit/test_leases.py::test_nothing"])
def test_a_test_that_is_gone_is_refused(tmp_path: Path, test: str) -> None:
    path = tmp_path / "promises.toml"
    path.write_text(PROMISE.format(f'"{test}"'))
    with pytest.raises(LookupError, match="there is no"):
        format_promises(read_promises(path), {})


def test_a_run_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "runs.toml"
    path.write_text(
        '[fuzz]\ncommit = "0"\non = "2020-01-01"\nsaid = ""\n\n[chaos]\ncommit = "1"\non = "2020-01-02"\nsaid = ""\n'
    )
    record_run("fuzz", 'passed --lines "9"', datetime(2026, 11, 29, tzinfo=UTC), path)
    runs = read_runs(path)
    assert runs["chaos"] == HandRun("1", "2020-01-02", "")
    assert (runs["fuzz"].on, runs["fuzz"].said) == ("2026-11-29", 'passed --lines "9"')
    table = format_promises(read_promises(), runs)
    assert f"2026-11-29, {runs['fuzz'].commit}" in table


def test_the_workflow_calls_the_target_that_a_person_calls() -> None:
    workflow = yaml.safe_load((PROJECT / ".github/workflows/nightly.yml").read_text())
    steps = [step.get("run") for step in workflow["jobs"]["nightly"]["steps"]]
    assert "make nightly" in steps
    assert list_nightly()
