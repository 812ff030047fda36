"""What `make ui` starts; that it really answers, and on this machine only, stands in ``tests/e2e/test_run_ui.py``."""

import os
import sys
import time
from pathlib import Path

import pytest

from cli.embedded import LOOPBACK
from cli.ui import ProcessGroup, Service, UiError, main, services, wait_until


def test_only_the_two_interfaces_listen_and_only_on_this_machine() -> None:
    commands = {one.name: one.command for one in services(8080, 5000)}
    listening = {name: command for name, command in commands.items() if "--port" in command}
    assert listening.keys() == {"api-server", "mlflow"}
    assert {command[command.index("--host") + 1] for command in listening.values()} == {LOOPBACK}
    assert all("--skip-serve-logs" in commands[name] for name in ("scheduler", "triggerer"))  # logs would be served


def test_what_is_waited_for_is_said_at_once_and_then_for_how_long(monkeypatch, capsys) -> None:
    monkeypatch.setattr("cli.ui.SAY_EVERY_S", 0.05)
    began_s = time.monotonic()
    wait_until(lambda: time.monotonic() - began_s > 0.3, "Airflow's database")
    first, *later = capsys.readouterr().out.splitlines()
    assert first == "ui: waiting for Airflow's database ..."
    assert set(later) == {"ui: waiting for Airflow's database, 0 s so far ..."}


def test_what_does_not_come_is_waited_for_no_longer_than_it_may_take() -> None:
    with pytest.raises(UiError, match="waited in vain for MLflow"):
        wait_until(lambda: False, "MLflow", 0.0)


@pytest.mark.parametrize("code", [0, 3])
def test_what_has_to_end_before_the_rest_starts_says_where_it_failed(tmp_path: Path, code: int) -> None:
    group = ProcessGroup(dict(os.environ), tmp_path)
    group.start(Service("database", [sys.executable, "-S", "-c", f"raise SystemExit({code})"]))
    try:
        if code:
            with pytest.raises(UiError, match=r"database ended with 3: see the end of .*database\.log"):
                _wait_until_ended(group)
        else:
            _wait_until_ended(group)
    finally:
        group.stop()


def _wait_until_ended(group: ProcessGroup) -> None:
    while not group.has_ended("database"):
        time.sleep(0.01)


def test_a_dag_that_is_not_there_is_refused_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--on", "nix"]) == 1
    assert "there is no DAG tidewise_nix; --on takes " in capsys.readouterr().err
