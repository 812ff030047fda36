"""The one Spark application of the project: ``spark-submit --py-files tidewise.zip spark_jobs/launch.py STAGE... ...``.

Stages run one after the other in one session.  When one is done, its counts stand in ``<out>/stages/<stage>.json``;
when one fails, a line says which, what failed and what to do, the later ones are not begun, and the exit code is 1.
Lines that begin with ``tidewise: WARNING`` tell what nobody should overlook though the stage has ended well.
"""

from __future__ import annotations

import importlib
import json
import logging
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from include.atomic_write import write_text
from include.place import place
from include.settings import Settings, load_settings
from include.spark.shipped_settings import split_argv, take_settings
from include.stage_catalogue import stage_of
from include.stage_request import StageRequest, parse_requests
from include.stage_warnings import list_warnings
from spark_jobs.failures import describe_failure
from spark_jobs.session import start_session


def write_summary(settings: Settings, stage: str, summary: dict[str, object]) -> None:
    """Write a stage's counts for the entry point and the report."""
    target = place(settings.paths.out) / "stages" / f"{stage}.json"
    write_text(target, json.dumps(summary, indent=1, default=str))


def run_stages(requests: Sequence[StageRequest]) -> None:
    """Run stages in this order in one session; the seconds of the first include the start of the session."""
    spark: SparkSession | None = None
    settings: Settings | None = None
    started_s = time.monotonic()
    with ThreadPoolExecutor(max_workers=1) as pool:
        # While Java starts or works, Python would only wait.
        modules = [pool.submit(importlib.import_module, stage_of(request.stage).module) for request in requests]
        for index, (request, module) in enumerate(zip(requests, modules, strict=True)):
            try:
                print(f"tidewise: stage {request.stage} starts", flush=True)
                if settings is None or spark is None:
                    settings = load_settings()
                    spark = start_session(settings, "-".join(one.stage for one in requests))
                summary = module.result().run(spark, settings, request)
            except Exception as error:
                print(f"tidewise: stage {request.stage} failed: {describe_failure(error)}", file=sys.stderr)
                raise
            summary["seconds"] = round(time.monotonic() - started_s, 2)
            write_summary(settings, request.stage, summary)
            print(f"tidewise: stage {request.stage} done: {json.dumps(summary, default=str)}", flush=True)
            for warning in list_warnings(request.stage, summary):
                print(f"tidewise: WARNING stage {request.stage}: {warning}", file=sys.stderr, flush=True)
            if index + 1 < len(requests):
                spark.catalog.clearCache()  # what a stage kept for itself is of no use to the next
            started_s = time.monotonic()


def main(argv: Sequence[str]) -> int:
    """Run the stages; returns the exit code."""
    submitted, asked = split_argv(argv)
    requests = parse_requests(asked)
    if submitted is not None:
        take_settings(submitted)
    logging.basicConfig(level=logging.WARNING, format="tidewise: %(levelname)s %(message)s")
    try:
        run_stages(requests)
    except Exception:
        print(f"tidewise: nothing half-written remains; after the fix run it again: {' '.join(asked)}", file=sys.stderr)
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
