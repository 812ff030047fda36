"""Who rescales the jobs of a cluster: Tidewise's controller, Flink's autoscaler as its process, or one in-process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.nexmark.autoscaler_process import start_autoscaler
from benchmarks.nexmark.rival import Rival
from cli.embedded import below
from include.atomic_write import write_text
from include.settings import SETTINGS_FILE_VARIABLE
from lab.local_flink.processes import start_process

SLOTS_MAX = 6
WINDOW_S, POLL_EVERY_S, DECIDE_EVERY_S = 60, 15.0, 60
CLUSTER = "tidewise"
TIDEWISE: Mapping[str, tuple[int, float, int]] = {
    "tidewise": (WINDOW_S, POLL_EVERY_S, DECIDE_EVERY_S),
    "tidewise-defaults": (300, 60.0, 300),
}
"""Its controller -> windows, polls and evaluations, s: as short as the others here, and those of its defaults."""
_ACTS: Mapping[str, str] = {
    "job.autoscaler.enabled": "true",
    "job.autoscaler.vertex.max-parallelism": str(SLOTS_MAX),
}
AUTOSCALERS: Mapping[str, Mapping[str, str]] = {
    "autoscaler": _ACTS,
    "autoscaler-2min": {
        **_ACTS,
        "job.autoscaler.stabilization.interval": "1 min",
        "job.autoscaler.metrics.window": "2 min",
    },
}
"""Its process with all defaults, and with windows as short as those of Tidewise here; settings of the cluster."""
PORTS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "autoscaler-port": ("flink_autoscaler", {}),
    "autoscaler-port-2min": ("flink_autoscaler", {"metrics_window_s": 120.0, "stabilization_interval_s": 60.0}),
    "conttune": ("conttune_a3", {}),
}
"""Policies of the catalogue, asked each minute about the same windows; the first two hold the autoscaler's rules."""
NAMES = (*TIDEWISE, *AUTOSCALERS, *PORTS)


def make_rival(name: str) -> Rival | None:
    """Return the policy of a job; None where a process acts."""
    return Rival(*PORTS[name], SLOTS_MAX) if name in PORTS else None


def start_actor(name: str, out: Path, rest_url: str, jar: Path | None) -> subprocess.Popen[bytes] | None:
    """Start the process that acts on a cluster; None for a policy that has none.

    Args:
        name: of the policy.
        out: for its settings, its lake and its log.
        rest_url: of the cluster.
        jar: of the autoscaler.
    """
    if name in TIDEWISE:
        environment = _write_settings(out, rest_url, *TIDEWISE[name])
        return start_process([sys.executable, "-m", "controller"], out / "actor.log", environment)
    if name in AUTOSCALERS:
        assert jar is not None
        return start_autoscaler(jar, rest_url, out / "actor.log", DECIDE_EVERY_S)
    return None


def _write_settings(out: Path, rest_url: str, window_s: int, poll_every_s: float, apply_every_s: int) -> dict[str, str]:
    path = out / "tidewise.toml"
    text = f"""
[clusters.{CLUSTER}]
rest_url = "{rest_url}"
window_s = {window_s}
poll_every_s = {poll_every_s:g}
slots_max = {SLOTS_MAX}

[clusters.{CLUSTER}.limits]
mode = "auto"

[apply]
tick_s = 5

[planner.timing]
apply_every_s = {apply_every_s}
"""
    write_text(path, text)
    return {**below(out), SETTINGS_FILE_VARIABLE: str(path)}
