"""The settings of the controller in a run: every job is decided on, only those of Tidewise are rescaled."""

from __future__ import annotations

from pathlib import Path

from benchmarks.nexmark.experiment import DECIDE_EVERY_S, MOST, POLL_EVERY_S, RIVALS, WINDOW_S, job_name
from cli.embedded import below
from include.atomic_write import write_text
from include.settings import SETTINGS_FILE_VARIABLE

CLUSTER = "nexmark"


def write_settings(out: Path, rest_url: str, queries: list[str]) -> dict[str, str]:
    """Write the settings file; returns the variables under which a controller works with it."""
    path = out / "tidewise.toml"
    others = [job_name(query, policy) for query in queries for policy in RIVALS]
    jobs = "".join(f'\n[limits.jobs."{CLUSTER}/{job}"]\nmode = "dry-run"\n' for job in others)
    text = f"""
[clusters.{CLUSTER}]
rest_url = "{rest_url}"
window_s = {WINDOW_S}
poll_every_s = {POLL_EVERY_S}
slots_max = {MOST}

[clusters.{CLUSTER}.limits]
mode = "auto"

[limits]
cooldown_s = 20

[settings]
loosen_after_s = 2

[apply]
tick_s = 5
confirm_timeout_s = 60

[planner.timing]
apply_every_s = {DECIDE_EVERY_S}
{jobs}"""
    write_text(path, text)
    return {**below(out), SETTINGS_FILE_VARIABLE: str(path)}
