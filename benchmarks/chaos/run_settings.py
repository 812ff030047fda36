"""The settings of a run with faults: short windows and ticks, and what a person writes into the file meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cli.embedded import below
from include.atomic_write import replace_atomically
from include.settings import SETTINGS_FILE_VARIABLE, Settings

CLUSTER = "chaos"
PLANNED_BY = "need_vector"  # a policy that decides with plans: its steps go out as they were planned
TICK_S, EVALUATE_S = 2, 4
CONFIRM_S = 18.0  # without what Flink waits for checkpoints
HOLD_S = 20.0  # after a person's change
PARALLELISM_MAX = 3
_QUICK_S = 3.0  # checkpoints that come so often delay no rescale


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under which a run is made, and what follows from them.

    Attributes:
        checkpoint_every_s: interval of the checkpoints.
        slots: of each of two TaskManagers; with 4 three jobs have to share them, with 5 each may have what it wants.
    """

    checkpoint_every_s: float = 10.0
    slots: int = 4

    @property
    def wait_s(self) -> float:
        """How long Flink may wait for a checkpoint before it rescales: by default three intervals, since 1.20."""
        return 3 * self.checkpoint_every_s if self.checkpoint_every_s > _QUICK_S else 0.0

    @property
    def confirm_s(self) -> float:
        """Within which a request is confirmed."""
        return CONFIRM_S + self.wait_s

    @property
    def settles_s(self) -> float:
        """Within which a fault has an end."""
        return 240.0 + 4 * self.wait_s

    @property
    def valid_s(self) -> float:
        """For which a planned step counts."""
        return 150.0 + 2 * self.wait_s


LONG, SHORT = Conditions(), Conditions(_QUICK_S, 5)
"""Of `make chaos`, and of its short form in the suite."""

_CLUSTER = """
[clusters.{cluster}]
rest_url = "{rest_url}"
window_s = 5
poll_every_s = 2.5
slots_max = {slots_max}
slots_total = {slots_total}

[clusters.{cluster}.limits]
mode = "{mode}"
"""
# A run has more bad steps than a day: jobs go on without a person who lifts their dry run.
_TEXT = """
{section}
[limits]
cooldown_s = 3
bad_steps_max = 100

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


# What loosens counts within a tick, so that a fault has an end before its step has.
_NO_BUDGET = 1000  # slots; a key that restrained and went would go on to restrain, and so do holds
_LOOSEN_AT_ONCE = "\n[settings]\nloosen_after_s = 2\n" if "settings" in Settings.model_fields else ""


class RunSettings:
    """The settings file of a run.

    Args:
        out: folder of the run.
        rest_url: under which the controller finds Flink.
        planned_jobs: those that follow the plans that the harness writes; others are left to the reactive part.
        conditions: of the run.
    """

    def __init__(self, out: Path, rest_url: str, planned_jobs: list[str], conditions: Conditions) -> None:
        self.path = out / "tidewise.toml"
        self._out, self._rest_url, self._planned, self._conditions = out, rest_url, planned_jobs, conditions
        self._mode = "auto"
        self._held = dict.fromkeys(planned_jobs, False)
        self._slots_max, self._slots_total, self._is_named = PARALLELISM_MAX, _NO_BUDGET, True
        self._write()

    @property
    def environment(self) -> dict[str, str]:
        """The variables under which processes work with this file."""
        return {**below(self._out), SETTINGS_FILE_VARIABLE: str(self.path)}

    @contextmanager
    def holding(self, job: str) -> Iterator[None]:
        """Put a job on hold."""
        self._held[job] = True
        self._write()
        try:
            yield
        finally:
            self._held[job] = False
            self._write()

    @contextmanager
    def lifting(self, job: str) -> Iterator[None]:
        """Take a job's hold back."""
        self._held[job] = False
        self._write()
        try:
            yield
        finally:
            self._held[job] = True
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
    def bounded(self, slots_max: int) -> Iterator[None]:
        """Allow a job fewer slots."""
        self._slots_max = slots_max
        self._write()
        try:
            yield
        finally:
            self._slots_max = PARALLELISM_MAX
            self._write()

    @contextmanager
    def budgeted(self, slots: int) -> Iterator[None]:
        """Give the cluster's jobs a budget of slots."""
        self._slots_total = slots
        self._write()
        try:
            yield
        finally:
            self._slots_total = _NO_BUDGET
            self._write()

    @contextmanager
    def unnamed(self) -> Iterator[None]:
        """Leave the cluster's section out, as somebody does who renames it."""
        self._is_named = False
        self._write()
        try:
            yield
        finally:
            self._is_named = True
            self._write()

    @contextmanager
    def deleted(self) -> Iterator[None]:
        """Delete the file."""
        self.path.unlink()
        try:
            yield
        finally:
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
        section = _CLUSTER.format(
            cluster=CLUSTER,
            rest_url=self._rest_url,
            mode=self._mode,
            slots_max=self._slots_max,
            slots_total=self._slots_total,
        )
        text = _TEXT.format(
            section=section if self._is_named else "",
            tick_s=TICK_S,
            evaluate_s=EVALUATE_S,
            confirm_s=self._conditions.confirm_s,
            hold_h=HOLD_S / 3600,
            policies="\n".join(f'"{CLUSTER}/{job}" = "{PLANNED_BY}"' for job in self._planned),
        )
        return (
            text
            + _LOOSEN_AT_ONCE
            + "".join(
                f'\n[limits.jobs."{CLUSTER}/{job}"]\nis_held = {str(is_held).lower()}\n'
                for job, is_held in sorted(self._held.items())
            )
        )
