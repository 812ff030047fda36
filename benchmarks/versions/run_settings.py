"""The settings of a run on clusters of several versions: short windows and ticks, one live cluster at a time."""

from __future__ import annotations

from pathlib import Path

from cli.embedded import below
from include.atomic_write import replace_atomically
from include.settings import SETTINGS_FILE_VARIABLE

SLOTS, MOST_SLOTS = 4, 3
"""Slots of a cluster, and how many the controller may use at first."""
WINDOW_S, SETTLE_S = 5, 10

_FLEET = f"""
[settings]
loosen_after_s = 2

[limits]
cooldown_s = 3

[ingest]
settle_s = {SETTLE_S}

[apply]
tick_s = 2
confirm_timeout_s = 90
foreign_change_hold_h = 0.01
block_h = 0.01

[planner.timing]
apply_every_s = 4
"""


class VersionSettings:
    """The settings file of a run.

    Args:
        out: folder of the run.
    """

    def __init__(self, out: Path) -> None:
        self.out, self.path = out, out / "tidewise.toml"
        self._clusters: list[str] = []

    @property
    def environment(self) -> dict[str, str]:
        """The variables under which processes work with this file."""
        return {**below(self.out), SETTINGS_FILE_VARIABLE: str(self.path), "TIDEWISE__SPARK__DRIVER_MEMORY": "2g"}

    def write(self, live: str | None = None, rest_url: str = "", pin: tuple[str, dict[str, int]] | None = None) -> None:
        """Write the file.

        Args:
            live: the cluster that runs now; the others are known by their windows only.
            rest_url: of it.
            pin: a job of it and what a person demands of its operators; then up to their largest may be used.
        """
        if live is not None and live not in self._clusters:
            self._clusters.append(live)
        text = _FLEET
        for name in self._clusters:
            text += f"\n[clusters.{name}]\nwindow_s = {WINDOW_S}\npoll_every_s = 2.5\n"
            if name == live:
                most = MOST_SLOTS if pin is None else max(pin[1].values())
                text += f'rest_url = "{rest_url}"\nslots_max = {most}\n\n[clusters.{name}.limits]\nmode = "auto"\n'
        if live is not None and pin is not None:
            wanted = ", ".join(f'"{operator}" = {count}' for operator, count in pin[1].items())
            text += f'\n[limits.jobs."{live}/{pin[0]}"]\npin = {{ {wanted} }}\n'
        with replace_atomically(self.path) as temporary:
            temporary.write_text(text)
