"""The parts of ``make test-long``, of tests/long/parts.toml; as a program it runs some of them, or all."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from include.settings import PROJECT

PARTS = PROJECT / "tests" / "long" / "parts.toml"


@dataclass(frozen=True, slots=True)
class LongPart:
    """A part of ``make test-long``.

    Attributes:
        meaning: what it tests.
        minutes: that it may take on two cores.
        runs: calls of pytest one after the other: ``tests``, ``options`` and ``environment``.
        extras: of ``make setup`` that it needs.
    """

    meaning: str
    minutes: int
    runs: tuple[Mapping[str, Any], ...]
    extras: tuple[str, ...] = ()

    @property
    def tests(self) -> list[str]:
        """Files of its tests."""
        return [test for run in self.runs for test in run["tests"]]


def read_parts() -> dict[str, LongPart]:
    """Return target -> part, in the order of the file."""
    table = tomllib.loads(PARTS.read_text())
    return {
        f"test-long PART={name}": LongPart(
            part["meaning"], part["minutes"], tuple(part["runs"]), tuple(part.get("extras", ()))
        )
        for name, part in table.items()
    }


def list_calls(target: str, part: LongPart, further: Sequence[str]) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Yield the programs of a part with variables of their environment: set-up, tests, the record that they passed."""
    if part.extras:
        yield ["make", "--no-print-directory", "setup", f"EXTRA={' '.join(part.extras)}"], {}
    for run in part.runs:
        options = ["-m", "long", "--durations=20", *shlex.split(run.get("options", "")), *further]
        yield [sys.executable, "-m", "pytest", *run["tests"], *options], run.get("environment", {})
    yield [sys.executable, "-m", "tools.record_run", target], {}


def main(argv: Sequence[str]) -> int:
    """Run the parts that are named before ``--``, or all, with pytest's options after it; returns the exit code."""
    words = [*argv, "--"]
    names, further = words[: words.index("--")], words[words.index("--") + 1 : -1]
    parts = {target: part for target, part in read_parts().items() if not names or target.partition("=")[2] in names}
    if len(parts) < len(names):
        listed = ", ".join(target.partition("=")[2] for target in read_parts())
        print(f"test-long: PART is one of {listed}; not {' '.join(names)}", file=sys.stderr)
        return 2
    for target, part in parts.items():
        for words, variables in list_calls(target, part, further):
            if code := subprocess.run(words, cwd=PROJECT, env={**variables, **os.environ}, check=False).returncode:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
