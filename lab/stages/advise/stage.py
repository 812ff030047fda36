"""Advise stage: what the last days cost and would have cost, job by job -> ``<out>/advice.json`` and ``advice.html``.

The models are the champion's, which `tidewise advise` has trained as of the day before the first that is appraised.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

from pyspark.sql import SparkSession

from fleet import frontier
from include.atomic_write import write_json, write_text
from include.place import place
from include.settings import Settings
from include.stage_request import StageRequest
from include.threads import running_beside
from include.utc import format_utc
from include.version import stage_version
from lab.stages.advise.fleet import describe_fleet
from lab.stages.advise.frames import count_history, measure_capacity
from lab.stages.advise.job_advice import ROW_SCHEMA, advise_job
from lab.stages.advise.page import render
from lab.stages.inputs.each_job import MOST_TASKS, map_jobs, read_jobs
from spark_jobs.lake import Lake
from spark_jobs.model_store import load_bundle
from spark_jobs.newest_rows import JOB
from spark_jobs.row_conditions import is_chosen

PROGRESS_EVERY_S = 5.0


def run(spark: SparkSession, settings: Settings, request: StageRequest) -> dict[str, object]:
    """Appraise every job that is asked for and write the page.

    Raises:
        IntervalError: the request has no days to appraise.
        NoModelError: nothing was trained.
    """
    bundle, lake, days = load_bundle(settings), Lake(spark, settings.paths.lake), request.interval
    length = days.end - days.start + timedelta(days=settings.backtest.learning_days, hours=1)
    task, inputs = read_jobs(lake, settings, bundle, days.end, length)
    capacity = measure_capacity(lake, settings, days)
    inputs = inputs.where(is_chosen(settings.advise.jobs)).join(capacity, JOB, "left").cache()
    jobs = inputs.count()
    with shown_progress(spark, jobs):
        result = map_jobs(inputs, partial(advise_job, task), ROW_SCHEMA).toPandas()
    inputs.unpersist()
    made = {
        "as_of": format_utc(days.end),
        "first": format_utc(days.start),
        "days": (days.end - days.start) // timedelta(days=1),
        "code_version": stage_version("advise", settings.advise.policies),
        "model_version": bundle.model_version,
        "history": count_history(lake, settings, days.end),
        "settings": settings.advise.model_dump() | {"costs": settings.planner.costs.model_dump()},
    }
    advice = describe_fleet(made, result.sort_values(JOB).to_dict("records"), settings)
    out = place(settings.paths.out)
    write_json(out / "advice.json", json.loads(json.dumps(advice, default=str)))
    curves = {f"{one['cluster']}/{one['job']}": one["curves"] for one in advice["jobs"] if one["curves"]}
    write_json(out / frontier.FILE, {"as_of": made["as_of"], "days": made["days"], "jobs": curves})
    write_text(out / "advice.html", render(advice, settings))
    return {
        "jobs": jobs,
        "appraised": len(advice["jobs"]),
        "skipped": dict(sorted(Counter(one["skipped"] for one in advice["skipped"]).items())),
        "advice": dict(Counter(one["verdict"]["advice"] for one in advice["jobs"])),
        "calibration": advice["calibration"],
    }


@contextmanager
def shown_progress(spark: SparkSession, jobs: int) -> Iterator[None]:
    """Print how many jobs are done while the block works."""
    done, tracker = threading.Event(), spark.sparkContext.statusTracker()

    def print_progress() -> None:
        shown = -1
        while not done.wait(PROGRESS_EVERY_S):
            active = [tracker.getStageInfo(one) for one in tracker.getActiveStageIds()]
            finished = max((one.numCompletedTasks for one in active if one is not None), default=0)
            if finished != shown:
                shown = finished
                print(f"tidewise: progress advise {finished} of {min(jobs, MOST_TASKS)}", flush=True)

    with running_beside(print_progress, done):
        yield
