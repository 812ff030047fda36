"""Checks of S3 through what the stages use: every place by the client of small objects, the lake by a Spark driver."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from typing import Any

from cli.doctor.findings import Finding, error, ok
from cli.doctor.storage import check_place
from cli.embedded import LOOPBACK
from include.place import place, remove_all
from include.settings import PROJECT, Settings, s3_keys
from include.spark.submission import anchor_paths, prepare_submission

PART = "S3"
_LINE = "tidewise: storage "
_WITHIN_S = 300


def check_s3_places(settings: Settings) -> list[Finding]:
    """Write and read below every further path that is on S3; the lake has its own checks."""
    keys = [key for key in s3_keys(settings) if key != "paths.lake"]
    places = {key: getattr(getattr(settings, key.split(".")[0]), key.split(".")[1]) for key in keys}
    return [finding for key, uri in places.items() for finding in check_place(key, uri)]


def check_spark_on_s3(settings: Settings) -> list[Finding]:
    """Have a Spark driver, submitted as a stage is, and delta-rs commit to one table of the lake."""
    if "paths.lake" not in s3_keys(settings):
        return []
    submission = prepare_submission(settings)
    submission = replace(submission, application=str(PROJECT / "spark_jobs" / "try_storage.py"))
    local = {"SPARK_LOCAL_IP": LOOPBACK} if settings.spark.master.startswith("local") else {}
    environment = dict(os.environ) | submission.environment | local
    try:
        done = subprocess.run(
            submission.command([]),
            env=environment,
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=_WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        remedy = "is the endpoint right, and is Spark's master there?"
        return [error(PART, "Spark", f"the driver has not ended within {_WITHIN_S} s", remedy)]
    finally:
        _remove_leftovers(settings)
    lines = [one.removeprefix(_LINE) for one in done.stdout.splitlines() if one.startswith(_LINE)]
    findings = [_judge(json.loads(one)) for one in lines]
    if done.returncode or not findings:
        tail = " ".join((done.stderr or done.stdout).strip().splitlines()[-1:])
        findings.append(error(PART, "Spark", f"the driver ended with {done.returncode}: {tail[:300]}", "see above"))
    return findings


def _judge(line: dict[str, Any]) -> Finding:
    if not line["fault"]:
        return ok(PART, line["check"], "as the stages do it")
    remedy = "see [storage] in docs/settings.md, and run `make setup EXTRA=s3`"
    return error(PART, line["check"], line["fault"][:400], remedy)


def _remove_leftovers(settings: Settings) -> None:
    try:
        remove_all([place(anchor_paths(settings).paths.lake) / "_doctor"])
    except OSError:  # the check of deleting says so
        return
