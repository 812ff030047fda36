"""``make airflow ARGS="..."``: Airflow's own command line on the embedded Airflow, for a backfill or a trigger."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cli.embedded import airflow_environment
from include.settings import SettingsError, load_settings
from include.spark.submission import anchor_paths


def main(argv: Sequence[str]) -> int:
    """Run Airflow's command line; returns its exit code."""
    try:
        environment = airflow_environment(anchor_paths(load_settings()))
    except SettingsError as error:
        print(f"airflow: {error}", file=sys.stderr)
        return 1
    airflow = Path(sys.executable).with_name("airflow")
    return subprocess.run([str(airflow), *argv], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
