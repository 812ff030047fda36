"""Flink's own autoscaler as its standalone process, beside the jobs: it only says what it would do."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.nexmark.experiment import WINDOW_S
from cli.java_build import java_tool
from lab.local_flink.build import FLINK_HOME
from lab.local_flink.processes import start_process

AUTOSCALER_SETTINGS: Mapping[str, str] = {
    "job.autoscaler.enabled": "true",
    "job.autoscaler.scaling.enabled": "false",
    "job.autoscaler.stabilization.interval": f"{2 * WINDOW_S} s",
    "job.autoscaler.metrics.window": f"{6 * WINDOW_S} s",
    "job.autoscaler.scale-down.interval": f"{6 * WINDOW_S} s",
    "job.autoscaler.restart.time": "30 s",
    "job.autoscaler.catch-up.duration": "5 min",
}
"""Of the cluster: the process reads them from each job's configuration; its defaults are as long as the load steps."""
_ENTRY_CLASS = "org.apache.flink.autoscaler.standalone.StandaloneAutoscalerEntrypoint"
_EVERY_S = 20
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3}")  # local time, as log4j writes it
_JOB = re.compile(r"\[([0-9a-f]{32})\]")
_CHANGE = re.compile(r"Vertex ID ([0-9a-f]{32}) \| Parallelism (\d+) -> (\d+)")


@dataclass(frozen=True, slots=True)
class Advice:
    """A parallelism that the process would have asked for at a time, epoch seconds."""

    at_s: float
    job_id: str
    vertex_id: str
    parallelism: int


def start_autoscaler(jar: Path, rest_url: str, log: Path, every_s: int = _EVERY_S) -> subprocess.Popen[bytes]:
    """Start the process on a cluster; its log has what it would do.

    Args:
        jar: ``flink-autoscaler-standalone`` with its dependencies.
        rest_url: of the cluster.
        log: of its output.
        every_s: between two of its decisions.
    """
    place = urlsplit(rest_url)
    command = [java_tool("java"), "-XX:+UseSerialGC", "-Xmx256m", "-cp", f"{jar}:{FLINK_HOME / 'lib'}/*", _ENTRY_CLASS]
    options = {
        "autoscaler.standalone.control-loop.interval": f"{every_s} s",
        "autoscaler.standalone.fetcher.flink-cluster.host": str(place.hostname),
        "autoscaler.standalone.fetcher.flink-cluster.port": str(place.port),
    }
    return start_process([*command, *(part for key, value in options.items() for part in (f"--{key}", value))], log, {})


def read_advice(log: Path) -> list[Advice]:
    """Return what the process would have done, in the order of its log."""
    result = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []:
        job, moment = _JOB.search(line), _MOMENT.search(line)
        if job is None or moment is None:
            continue
        at_s = datetime.strptime(moment[1], "%Y-%m-%d %H:%M:%S").astimezone().timestamp()
        result += [Advice(at_s, job[1], vertex, int(wanted)) for vertex, _, wanted in _CHANGE.findall(line)]
    return result
