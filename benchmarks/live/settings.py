"""How a run is made: at the product's own pace, or, for a functional run of some minutes, faster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.live.live_job import SLOTS
from cli.embedded import below
from include.atomic_write import write_text
from include.settings import SETTINGS_FILE_VARIABLE

CLUSTER = "live"


@dataclass(frozen=True, slots=True)
class Pace:
    """Times of a run.

    Attributes:
        name: of the pace.
        window_s, poll_every_s, evaluate_s: of the controller, and of the policies that are asked in its place.
        controller: further lines of its settings; the product's defaults without any.
        autoscaler: settings of Flink's autoscaler in the place of its defaults.
        lead_s: for so long the first load of the window goes on before it.
        is_short: whether Flink's adaptive scheduler rests for two seconds only after a rescale.
        slots_after_s: so long the second TaskManager takes to come after its slots are asked for; 0: it is there.
    """

    name: str
    window_s: int = 300
    poll_every_s: float = 60.0
    evaluate_s: int = 300
    controller: str = ""
    autoscaler: Mapping[str, str] = field(default_factory=dict)
    lead_s: int = 180
    is_short: bool = False
    slots_after_s: float = 0.0


PRODUCT = Pace("product")
SHORT = Pace(
    "short",
    window_s=10,
    poll_every_s=5.0,
    evaluate_s=20,
    controller="""
[limits]
cooldown_s = 20

[apply]
tick_s = 5
confirm_timeout_s = 60

[planner.timing]
apply_every_s = 20
""",
    autoscaler={
        "job.autoscaler.stabilization.interval": "20 s",
        "job.autoscaler.metrics.window": "60 s",
        "job.autoscaler.scale-down.interval": "60 s",
        "job.autoscaler.restart.time": "30 s",
        "job.autoscaler.catch-up.duration": "5 min",
    },
    lead_s=60,
    is_short=True,
)


def write_settings(folder: Path, pace: Pace, rest_url: str = "") -> dict[str, str]:
    """Write the settings file of a run; returns the variables under which stages and controller work with it.

    Args:
        folder: below which they keep everything.
        pace: of the run.
        rest_url: of the cluster; without it the stages before the run read the history at the product's pace.
    """
    waits = [] if not pace.slots_after_s else ["", "[planner.timing]", f"slots_wait_s = {pace.slots_after_s:g}"]
    lines = [*waits, "", f"[clusters.{CLUSTER}]", f"slots_max = {SLOTS}", *(["elastic = true"] if waits else [])]
    if rest_url:
        lines += [
            f'rest_url = "{rest_url}"',
            f"window_s = {pace.window_s}",
            f"poll_every_s = {pace.poll_every_s:g}",
            "",
            f"[clusters.{CLUSTER}.limits]",
            'mode = "auto"',
            # What a person loosens counts after a while only, and this file is written when the run begins.
            "",
            "[settings]",
            "loosen_after_s = 2",
            pace.controller,
        ]
    path = folder / ("tidewise.toml" if rest_url else "history.toml")
    write_text(path, "\n".join(lines) + "\n")
    return {**below(folder), SETTINGS_FILE_VARIABLE: str(path.resolve())}
