"""The one Spark application of the project: ``spark-submit --py-files tidewise.zip spark_jobs/launch.py STAGE ...``.

On success it writes ``<out>/stages/<stage>.json`` with the stage's counts; on failure it says in one line what failed
and what to do, and exits with 1.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from include.atomic_write import write_text
from include.settings import Settings, load_settings
from include.stages import StageRequest
from spark_jobs.session import start_session


def write_summary(settings: Settings, stage: str, summary: dict[str, object]) -> None:
    """Write a stage's counts for the entry point and the report, whole or not at all."""
    target = Path(settings.paths.out) / "stages" / f"{stage}.json"
    write_text(target, json.dumps(summary, indent=1, default=str))


def main(argv: Sequence[str]) -> int:
    """Run one stage; returns the exit code."""
    started = time.monotonic()
    request = replace(StageRequest.parse(argv), started_at=datetime.now(UTC), started_on_s=started)
    try:
        settings = load_settings()
        with ThreadPoolExecutor(max_workers=1) as pool:
            # While Java starts, Python would only wait.
            of_stage = pool.submit(importlib.import_module, f"spark_jobs.{request.stage}.stage")
            spark = start_session(settings, request.stage)
            stage = of_stage.result()
        summary = stage.run(spark, settings, request)
    except Exception as error:
        headline = str(error).splitlines()[0] if str(error) else ""
        print(f"tidewise: stage {request.stage} failed: {type(error).__name__}: {headline}", file=sys.stderr)
        print(f"tidewise: nothing half-written remains; after the mend run it again: {' '.join(argv)}", file=sys.stderr)
        raise
    summary["seconds"] = round(time.monotonic() - started, 2)
    write_summary(settings, request.stage, summary)
    print(f"tidewise: stage {request.stage} done: {json.dumps(summary, default=str)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
