"""Capacity and recovery models: what their intervals cover, how wrong they are, what training costs.

Synthetic families are made here (``capacity/families.py``); the history is that of ``make run``, of which the lake has
to be there.  With ``--commit`` the capacity models of that commit are measured as well, on the same windows; recovery
models are this tree's alone (``recovery/models.py``).
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.measurement import Measurement
from benchmarks.pipeline.commit_copy import UnknownCommitError, copy_tree
from benchmarks.recovery import models as recovery_models
from include.atomic_write import write_text
from include.settings import PROJECT

TABLE: Final = Path("out/models.md")
_PARTS: Final = PROJECT / "benchmarks" / "capacity"
_TIME: Final = "training time per operator, us"
Table = Mapping[str, Mapping[str, float]]


class BenchmarkError(RuntimeError):
    """The figures cannot be taken; the message says why."""


def run(work: Path, commit: str | None = None) -> list[Measurement]:
    """Measure the working tree, and a commit beside it; a table goes to :data:`TABLE`.

    Raises:
        BenchmarkError: the commit is not known, or its models could not be measured.
    """
    lake = PROJECT / "out" / "lake"
    history = [str(lake)] if (lake / "silver" / "observations").is_dir() else []
    now = _measure(PROJECT, work / "now.json", history)
    before: Table = {}
    if commit:
        tree = work / "before"
        try:
            copy_tree(commit, tree)
        except UnknownCommitError as error:
            raise BenchmarkError(str(error)) from error
        shutil.copytree(
            _PARTS, tree / _PARTS.relative_to(PROJECT), dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
        before = _measure(tree, work / "before.json", history)
    recovery = recovery_models.measurements(recovery_models.measure(recovery_models.DAYS))
    write_text(TABLE, format_table(now, before, commit) + format_recovery(recovery))
    capacity = [
        Measurement(
            f"{family}, {figure}", value, "", before.get(family, {}).get(figure), _ratio(figure, value, family, before)
        )
        for family, figures in now.items()
        for figure, value in figures.items()
    ]
    return [*capacity, *recovery]


def format_recovery(figures: Sequence[Measurement]) -> str:
    """Return a table of the recovery models as Markdown."""
    lines = ["", "Recovery models on the simulated history, each event predicted ahead.", ""]
    lines += ["| figure | share |", "|---|---|", *(f"| {one.name} | {one.value:.1%} |" for one in figures)]
    return "\n".join(lines) + "\n"


def _measure(tree: Path, told: Path, history: Sequence[str]) -> Table:
    command = [sys.executable, "-m", "benchmarks.capacity.measures", str(told), *history]
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"the models in {tree} cannot be measured: {done.stderr.strip().splitlines()[-1]}")
    result: Table = json.loads(told.read_text())
    return result


def _ratio(figure: str, value: float, family: str, before: Table) -> float | None:
    """Return how many times faster training is than before; other figures have no ratio."""
    known = before.get(family, {}).get(figure)
    return known / value if figure == _TIME and known is not None else None


def format_table(now: Table, before: Table, commit: str | None) -> str:
    """Return the tables as Markdown: a row per family, this tree's figure and, in brackets, the commit's."""
    beside = f"; in brackets commit `{commit}`" if commit else ""
    lines = [f"Share of windows covered, forward in time, by intervals of 80% and 95%{beside}.", ""]
    lines += _rows(
        now, before, {f"{level}, {place}": f"{level} covered, {place}" for place in _PLACES for level in _LEVELS}
    )
    errors = {
        "RMSE seen and between": "root of mean squared error, seen and between",
        **{f"error at {factor}x": f"mean error at {factor}x the largest seen" for factor in ("1.5", "2", "2.5")},
        **{f"half-width of 80% at {factor}x": f"half-width of 80% at {factor}x" for factor in ("1.5", "2", "2.5")},
    }
    families = {name: figures for name, figures in now.items() if _TIME in figures}
    lines += ["", "Errors against the true capacity, and half-widths, as shares of capacity.", ""]
    lines += _rows(families, before, errors)
    if before:
        lines += ["", "CPU time of training per operator, one thread, as a ratio to the commit's.", ""]
        lines += ["| family | us | ratio |", "|---|---|---|"]
        for name, figures in families.items():
            lines.append(f"| {name} | {figures[_TIME]:.0f} | {figures[_TIME] / before[name][_TIME]:.2f} |")
    histories = {name: figures for name, figures in now.items() if _TIME not in figures}
    lines += ["", "Windows that were predicted, and mean error.", ""]
    lines += ["| history | place | windows | mean error |", "|---|---|---|---|"]
    for name, figures in histories.items():
        for place in _PLACES:
            old = before.get(name, {}).get(f"mean error, {place}", math.nan)
            error = _share(figures[f"mean error, {place}"], old)
            lines.append(f"| {name} | {place} | {figures[f'windows, {place}']:,.0f} | {error} |")
    return "\n".join(lines) + "\n"


_PLACES: Final = ("seen", "between", "beyond")
_LEVELS: Final = ("80%", "95%")


def _rows(now: Table, before: Table, columns: Mapping[str, str]) -> list[str]:
    lines = [f"| family | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, figures in now.items():
        cells = [_share(figures[key], before.get(name, {}).get(key, math.nan)) for key in columns.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _share(value: float, old: float) -> str:
    text = "-" if math.isnan(value) else f"{value:.1%}"
    return text if math.isnan(old) else f"{text} ({old:.1%})"
