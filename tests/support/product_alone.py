"""Run a program as where the laboratory is not installed: it has no entry points and cannot be imported."""

from __future__ import annotations

import os
import subprocess
import sys

from include.settings import PROJECT

ALONE = """
import importlib.metadata, sys
found = importlib.metadata.entry_points
def entry_points(**chosen):
    return () if chosen.get("group", "").startswith("tidewise") else found(**chosen)
importlib.metadata.entry_points = entry_points
class NoLaboratory:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "lab":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoLaboratory())
"""


def run_alone(code: str, **variables: str) -> str:
    """Return the last line that a program has printed."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE + code],
        cwd=PROJECT,
        env=os.environ | {"PYTHONPATH": str(PROJECT)} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    return done.stdout.strip().splitlines()[-1]
