"""What is started by ``python -m`` somewhere in the project can be started."""

from __future__ import annotations

import re
import subprocess

import pytest

from include.settings import PROJECT

_STARTED = re.compile(
    r"-m[\"', ]+((?:cli|tools|controller)(?:\.\w+)*)|(?:module_options|module_step)\(.*?((?:cli|tools)\.\w+)"
)
_WHERE = (
    "Makefile",
    "dags",
    "include",
    "controller",
    "cli",
    "tools",
    "deploy",
    "docs/*.md",
    "README.md",
    "Containerfile",
)


def list_started() -> set[str]:
    listed = subprocess.run(["git", "ls-files", *_WHERE], cwd=PROJECT, check=True, capture_output=True, text=True)
    texts = [(PROJECT / name).read_text(encoding="utf-8", errors="ignore") for name in listed.stdout.split()]
    return {first or second for text in texts for first, second in _STARTED.findall(text)}


def test_many_are_found() -> None:
    assert {"cli.console", "cli.collect", "cli.setup", "controller"} <= list_started()


@pytest.mark.parametrize("module", sorted(list_started()))
def test_a_module_that_is_started_does_something(module: str) -> None:
    path = PROJECT / module.replace(".", "/")
    file = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
    assert "__main__" in file.name or '__name__ == "__main__"' in file.read_text(encoding="utf-8")
