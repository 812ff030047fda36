"""The settings of a run with faults: short windows and ticks, and what a person writes into the file meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.embedded import below
from include.atomic_write import replace_atomically
from include.settings import SETTINGS_FILE_VARIABLE

CLUSTER = "chaos"
PLANNED_BY = "need_vector"  # a policy that decides with plans: its steps go out as they were planned
TICK_S, EVALUATE_S = 2, 4
CONFIRM_S = 18.0
HOLD_S = 20.0  # after a person's change
PARALLELISM_MAX = 3

_TEXT = """
[clusters.{cluster}]
rest_url = "{rest_url}"
window_s = 5
poll_every_s = 2.5
slots_max = {slots_max}

[clusters.{cluster}.limits]
mode = "{mode}"

[limits]
cooldown_s = 3

[ingest]
settle_s = 10

[apply]
tick_s = {tick_s}
confirm_timeout_s = {confirm_s}
foreign_change_hold_h = {hold_h}
block_h = 0.01

[planner.timing]
apply_every_s = {evaluate_s}

[planner.policies]
{policies}
"""


class RunSettings:
    """The settings file of a run.

    Args:
        out: folder of the run.
        rest_url: under which the controller finds Flink.
        planned_jobs: those that follow the plans that the harness writes; others are left to the reactive part.
    """

    def __init__(self, out: Path, rest_url: str, planned_jobs: list[str]) -> None:
        self.path = out / "tidewise.toml"
        self._out, self._rest_url, self._planned = out, rest_url, planned_jobs
        self._mode, self._held = "auto", set[str]()
        self._write()

    @property
    def environment(self) -> dict[str, str]:
        """The variables under which processes work with this file."""
        return {**below(self._out), SETTINGS_FILE_VARIABLE: str(self.path)}

    @contextmanager
    def holding(self, job: str) -> Iterator[None]:
        """Put a job on hold."""
        self._held.add(job)
        self._write()
        try:
            yield
        finally:
            self._held.discard(job)
            self._write()

    @contextmanager
    def switched_off(self) -> Iterator[None]:
        """Set the mode of the cluster to off."""
        self._mode = "off"
        self._write()
        try:
            yield
        finally:
            self._mode = "auto"
            self._write()

    @contextmanager
    def broken(self) -> Iterator[None]:
        """Leave a file that cannot be used, as somebody does who saves too early."""
        self._put(self._text() + '\n[limits.jobs."nosuch')
        try:
            yield
        finally:
            self._write()

    def _write(self) -> None:
        self._put(self._text())

    def _put(self, text: str) -> None:
        with replace_atomically(self.path) as temporary:
            temporary.write_text(text)

    def _text(self) -> str:
        text = _TEXT.format(
            cluster=CLUSTER,
            rest_url=self._rest_url,
            mode=self._mode,
            slots_max=PARALLELISM_MAX,
            tick_s=TICK_S,
            evaluate_s=EVALUATE_S,
            confirm_s=CONFIRM_S,
            hold_h=HOLD_S / 3600,
            policies="\n".join(f'"{CLUSTER}/{job}" = "{PLANNED_BY}"' for job in self._planned),
        )
        return text + "".join(f'\n[limits.jobs."{CLUSTER}/{job}"]\nis_held = true\n' for job in sorted(self._held))
