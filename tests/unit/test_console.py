"""``tidewise``: one table of verbs, near names, completion, and what a shell gets as exit code."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cli import console

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("verb", console.VERBS)
def test_a_verb_has_something_that_takes_its_arguments(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    if verb == "airflow":
        return  # hands its arguments on
    with pytest.raises(SystemExit) as stopped:
        console.find_main(verb)(["--help"])
    assert stopped.value.code == 0
    assert "usage:" in capsys.readouterr().out


def test_a_misspelt_verb_is_answered_with_near_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert console.main(["stauts"]) == 2
    assert "there is no verb 'stauts'; did you mean status" in capsys.readouterr().err
    assert console.main(["xyzzy"]) == 2
    assert "tidewise --help lists the verbs" in capsys.readouterr().err
    assert console.main(["completion"]) == 2
    assert "completion is of one shell: bash" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["log", "plan", "quarantine", "models list"])
def test_a_folder_that_is_not_there_is_refused_and_not_made(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert console.main([*verb.split(), "--out", str(tmp_path / "mistyped")]) == 2
    assert f"there is no folder {tmp_path / 'mistyped'}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shell", console.SHELLS)
def test_completion_names_the_verbs(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert console.main(["completion", shell]) == 0
    assert "status page why" in capsys.readouterr().out


def test_help_and_version_are_short(capsys: pytest.CaptureFixture[str]) -> None:
    assert console.main([]) == console.main(["--version"]) == 0
    shown = capsys.readouterr().out
    assert "tidewise status " in shown
    assert "tidewise 0." in shown


def test_nothing_of_a_command_is_loaded_before_it_is_asked_for() -> None:
    code = (
        "import sys, cli.console; cli.console.main(['--help']); print(sorted({*sys.modules} & {'pydantic', 'numpy'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_program_is_the_one_that_pip_installs() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"tidewise": "cli.console:main"}
    module, _, name = project["scripts"]["tidewise"].partition(":")
    assert getattr(sys.modules[module], name) is console.main
