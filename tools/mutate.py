"""``python -m tools.mutate``: the share of small changes to the pure modules that their unit tests notice.

mutmut changes one thing at a time (a comparison, a constant, an argument) and runs the tests that reach it.
``[tool.mutation.modules]`` in pyproject.toml names the modules and their tests.  Everything happens in a copy under
``out/mutation``; a sample is drawn with a fixed seed, so that another commit can be compared.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cli.arguments import CommandParser, number, whole_number
from include.settings import PROJECT

# What mutmut says of a mutant that the tests noticed; without tests or surviving it counts as not noticed.
NOTICED = {"killed", "timeout", "segfault", "suspicious"}
_SEED = 20
_CODE = ("include", "models", "fleet", "page", "spark_jobs", "controller", "cli", "lab", "tools", "benchmarks")
_COPIED = ("data", "dags", "flink_job", "docs", "tidewise.toml")


class MutationError(RuntimeError):
    """The measurement cannot be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Module:
    """What is measured as one: source files (patterns) and the unit tests that have to notice."""

    name: str
    sources: tuple[str, ...]
    tests: tuple[str, ...]

    def files(self, root: Path) -> list[str]:
        """Return the source files below a root, relative to it."""
        return sorted({str(path.relative_to(root)) for pattern in self.sources for path in root.glob(pattern)})

    def existing_tests(self, root: Path) -> list[str]:
        """Return the tests below a root, relative to it."""
        return sorted({str(path.relative_to(root)) for pattern in self.tests for path in root.glob(pattern)})


@dataclass(frozen=True, slots=True)
class Score:
    """What became of the mutants of a module.

    Attributes:
        module: its name.
        mutants: how many there are.
        tried: how many were drawn and run.
        noticed: how many of them a test noticed.
        missed: the others, by name, with what mutmut says of them.
        seconds: how long it took.
    """

    module: str
    mutants: int
    tried: int
    noticed: int
    missed: Mapping[str, str]
    seconds: float


def read_modules(pyproject: Path = PROJECT / "pyproject.toml") -> list[Module]:
    """Return the modules that pyproject.toml names."""
    table = tomllib.loads(pyproject.read_text())["tool"]["mutation"]["modules"]
    return [Module(name, tuple(entry["sources"]), tuple(entry["tests"])) for name, entry in table.items()]


def copy_tree(commit: str | None, target: Path) -> None:
    """Copy the files of a commit, or those of the working tree, into an empty folder."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    if commit:
        archive = subprocess.run(["git", "archive", commit], cwd=PROJECT, capture_output=True, check=False)
        if archive.returncode:
            raise MutationError(f"git knows no commit {commit}")
        subprocess.run(["tar", "-x", "-C", str(target)], input=archive.stdout, check=True)
        return
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        source = PROJECT / name
        if source.is_file() and not source.is_symlink():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


def list_mutants(root: Path, files: Sequence[str]) -> list[str]:
    """Return the names of all mutants of the files, as mutmut names them."""
    from mutmut.mutation.file_mutation import mutate_file_contents
    from mutmut.utils.format_utils import get_mutant_name

    names: list[str] = []
    with contextlib.chdir(root):  # mutmut reads its configuration from the current folder
        for file in files:
            mutated = mutate_file_contents(file, Path(file).read_text())
            names += [get_mutant_name(Path(file), name) for name in mutated.mutant_names]
    return names


def configure(root: Path, files: Sequence[str], tests: Sequence[str]) -> None:
    """Write mutmut's configuration of one module."""
    lists = {
        "source_paths": [name for name in _CODE if (root / name).is_dir()],
        "only_mutate": list(files),
        "also_copy": [name for name in _COPIED if (root / name).exists()],
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "-p", "no:randomly"],
        "pytest_add_cli_args_test_selection": list(tests),
    }
    lines = ["[mutmut]", "track_dependencies = false"]
    lines += ["\n    ".join([f"{key} =", *values]) for key, values in lists.items()]
    (root / "setup.cfg").write_text("\n".join(lines) + "\n")


def measure(module: Module, root: Path, sample: int, children: int) -> Score:
    """Run the tests of a module on a sample of its mutants.

    Args:
        module: which.
        root: a copy of the project, in which mutmut works.
        sample: how many mutants to draw; 0 for all.
        children: how many run at a time.

    Raises:
        MutationError: mutmut failed; the message names its log.
    """
    began = time.monotonic()
    files, tests = module.files(root), module.existing_tests(root)
    shutil.rmtree(root / "mutants", ignore_errors=True)
    configure(root, files, tests)
    names = list_mutants(root, files)
    drawn = sorted(random.Random(_SEED).sample(names, sample)) if 0 < sample < len(names) else names
    if not drawn:
        return Score(module.name, 0, 0, 0, {}, 0.0)
    mutmut = str(Path(sys.executable).parent / "mutmut")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("VIRTUAL_ENV", None)
    log = root.parent / f"{module.name}.log"
    with log.open("w") as output:
        command = [mutmut, "run", "--max-children", str(children), *drawn]
        done = subprocess.run(command, cwd=root, env=environment, stdout=output, stderr=output, check=False)
    if done.returncode:
        raise MutationError(f"mutmut failed on {module.name}: see {log}")
    listed = subprocess.run(
        [mutmut, "results", "--all", "true"], cwd=root, env=environment, capture_output=True, text=True, check=True
    ).stdout
    states = dict(line.strip().rsplit(": ", 1) for line in listed.splitlines() if ": " in line)
    missed = {name: states[name] for name in drawn if states[name] not in NOTICED}
    return Score(
        module.name, len(names), len(drawn), len(drawn) - len(missed), missed, round(time.monotonic() - began, 1)
    )


def format_scores(scores: Sequence[Score]) -> str:
    """Return a table as text."""
    lines = [f"{'module':<14} {'mutants':>8} {'tried':>6} {'noticed':>8} {'score':>6} {'seconds':>8}"]
    total = Counter[str]()
    for score in scores:
        share = f"{score.noticed / score.tried:.0%}" if score.tried else "-"
        counts = f"{score.mutants:>8} {score.tried:>6} {score.noticed:>8}"
        lines.append(f"{score.module:<14} {counts} {share:>6} {score.seconds:>8.0f}")
        total.update({"tried": score.tried, "noticed": score.noticed})
    if total["tried"]:
        lines.append(f"mutate: {total['noticed']} of {total['tried']} mutants noticed")
    return "\n".join(lines)


def run(options: argparse.Namespace, modules: Sequence[Module]) -> int:
    """Measure the modules that were asked for; returns the exit code."""
    wanted = [module for module in modules if not options.module or module.name in options.module]
    out = PROJECT / "out" / "mutation"
    root = out / "work"
    copy_tree(options.commit, root)
    scores: list[Score] = []
    began = time.monotonic()
    for module in wanted:
        if options.minutes and time.monotonic() - began > 60 * options.minutes:
            print(f"mutate: {options.minutes:g} minutes are over; {module.name} and what follows is left out")
            break
        scores.append(measure(module, root, options.sample, options.children))
        print(format_scores(scores[-1:]).splitlines()[1], flush=True)
        for name, state in scores[-1].missed.items():
            print(f"    {state}: {name}", flush=True)
    (out / "mutation.json").write_text(json.dumps([asdict(score) for score in scores], indent=1) + "\n")
    print(format_scores(scores))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; bad arguments and failures are one line."""
    modules = read_modules()
    parser = CommandParser(prog="mutate", description=__doc__)
    parser.add_argument(
        "--module", nargs="+", choices=[module.name for module in modules], help="which modules; default: all"
    )
    parser.add_argument("--sample", type=whole_number(0), default=60, help="mutants per module, 0: all (default: 60)")
    parser.add_argument("--minutes", type=number(0, 10_080, above=True), help="begin no further module after this time")
    parser.add_argument("--children", type=whole_number(1, 256), default=os.cpu_count() or 1, help="mutants at a time")
    parser.add_argument("--commit", help="measure the files of this commit instead of the working tree's")
    try:
        return run(parser.parse_args(argv), modules)
    except MutationError as error:
        print(f"mutate: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
