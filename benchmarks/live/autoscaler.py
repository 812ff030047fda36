"""Flink's own autoscaler as its standalone process: built from its sources, and started on a cluster."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.live.live_job import SLOTS
from cli.arguments import UsageError
from include.settings import PROJECT

REPOSITORY = "https://github.com/apache/flink-kubernetes-operator"
COMMIT = "6e9caeb4"
"""Of July 2026, after release 1.15: the standalone autoscaler is in no registry, so it is built from its sources."""
JARS = PROJECT / ".cache" / "flink-autoscaler-standalone"
DEFAULTS: Mapping[str, str] = {
    "job.autoscaler.enabled": "true",
    "job.autoscaler.vertex.max-parallelism": str(SLOTS),
}
"""All else as the autoscaler has it; above its slots the cluster could not follow."""
TUNED: Mapping[str, str] = {
    **DEFAULTS,
    "job.autoscaler.utilization.target": "0.8",
    "job.autoscaler.utilization.max": "0.9",
    "job.autoscaler.utilization.min": "0.7",
}
"""The form that was cheapest in the replay (``flink_autoscaler_tuned`` of the catalogue)."""
_MODULES = "flink-autoscaler-standalone"
_SKIPPED = ("-DskipTests", "-Dcheckstyle.skip", "-Dspotless.check.skip", "-Drat.skip", "-Denforcer.skip")


def find_jar(folder: Path = JARS) -> Path | None:
    """Return the jar that was built; None without one."""
    return next(iter(sorted(folder.glob("flink-autoscaler-standalone-*.jar"))), None)


def build_jar(source: str = REPOSITORY, maven: Sequence[str] = (), folder: Path = JARS) -> Path:
    """Return the jar; it is built when it is not there (about five minutes, with git and Maven).

    Args:
        source: what git clones: an address, or a folder with a clone.
        maven: further arguments of Maven, such as ``-Dflink.version=1.20.0`` for a registry without the latest.
        folder: where it is kept.

    Raises:
        UsageError: git or Maven is missing, or failed.
    """
    jar = find_jar(folder)
    if jar is not None:
        return jar
    for tool in ("git", "mvn"):
        if not shutil.which(tool):
            raise UsageError(f"no {tool}: install it, or pass --autoscaler-jar, or leave flink_autoscaler out")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="autoscaler-") as work:
        clone = Path(work) / "clone"
        _run(["git", "clone", "-q", source, str(clone)], Path(work))
        _run(["git", "checkout", "-q", COMMIT], clone)
        _run(["mvn", "-q", "-B", "-ntp", "-pl", _MODULES, "-am", "package", *_SKIPPED, *maven], clone)
        made = find_jar(clone / _MODULES / "target")
        if made is None:
            raise UsageError(f"Maven made no jar of {_MODULES}")
        shutil.copyfile(made, folder / made.name)
        return folder / made.name


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        output = (done.stdout + done.stderr).strip()[-600:]
        raise UsageError(f"the autoscaler was not built: `{' '.join(command[:3])} ...` failed: {output}")
