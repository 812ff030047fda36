"""``python -m benchmarks.chaos.supervisor FILE``: starts a controller and waits for it, as Airflow's task does.

The file gets the process id of the controller, which outlives a supervisor that is killed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LONGEST_S = 3600  # a controller that was left behind by the harness, too, ends by itself


def main(argv: list[str]) -> int:
    """Start a controller in a session of its own and wait for its end."""
    command = [sys.executable, "-m", "controller", "--seconds", str(LONGEST_S)]
    child = subprocess.Popen(command, start_new_session=True)
    Path(argv[0]).write_text(str(child.pid))
    return child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
