"""Stages in a Spark application of this command's own, without Airflow: for what is no part of the DAGs."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cli.embedded import LOOPBACK
from cli.jar_fetch import fetch_jars
from cli.preflight import find_jdk
from cli.process_group import end_group
from cli.progress import ProgressLog
from include.settings import PROJECT, Settings
from include.spark.jars import unusable_jars
from include.spark.submission import prepare_submission
from include.stage_request import StageRequest

_STAGE_STARTS = re.compile(r"^tidewise: stage (\S+) starts")
_PROGRESS = re.compile(r"^tidewise: progress (\S+) (\d+) of (\d+)")
_CAUSE = re.compile(r"^tidewise: stage \S+ failed: .*")


def bring_jars(settings: Settings) -> None:
    """Fetch the jars that Spark needs beside its own where they are missing, as after an installation by pip.

    Raises:
        PreflightError: there is no Java of a version that Spark runs on.
        SetupError: they could not be fetched.
    """
    folder, jdk = PROJECT / settings.spark.jars_dir, find_jdk()
    if lacking := unusable_jars(folder):
        print(f"{len(lacking)} jars are fetched into {folder}, once (10 MB)", flush=True)
        fetch_jars(folder, jdk.java, Path(sysconfig.get_path("purelib")), lacking)


class ApplicationError(RuntimeError):
    """A stage failed; the message has its cause and the log."""


def form_argv(requests: Sequence[StageRequest]) -> list[str]:
    """Return the arguments of one application for requests that are alike but for the stage."""
    return [*(str(one.stage) for one in requests), *requests[0].to_argv()[1:]]


def run_application(settings: Settings, requests: Sequence[StageRequest], log: Path, progress: ProgressLog) -> None:
    """Run stages, one after the other in one application; what they print goes to the end of a log.

    Args:
        settings: of the run; the environment must give the same.
        requests: of the stages, alike but for the stage.
        log: file that is written to.
        progress: told of every stage that starts, and how far it is.

    Raises:
        ApplicationError: a stage failed.
    """
    submission = prepare_submission(settings)
    local = {"SPARK_LOCAL_IP": LOOPBACK} if settings.spark.master.startswith("local") else {}
    cause = ""
    with (
        progress.never_silent(),
        log.open("a", encoding="utf-8") as retained,
        _run_in_group(
            submission.command(submission.arguments(form_argv(requests))),
            dict(os.environ) | submission.environment | local,
        ) as child,
    ):
        for line in child.stdout or ():
            retained.write(line)
            if result := _STAGE_STARTS.match(line):
                progress.begin(result[1])
            elif result := _PROGRESS.match(line):
                progress.say(f"        {result[1]}: {result[2]} of {result[3]} jobs done")
            elif result := _CAUSE.match(line):
                cause = f": {result[0]}"
    if child.returncode:
        names = ", ".join(one.stage for one in requests)
        raise ApplicationError(f"{names} ended with exit code {child.returncode}{cause}\nlog: {log}")


@contextmanager
def _run_in_group(command: Sequence[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a process group of its own, which ends with the block."""
    child = subprocess.Popen(
        command,
        cwd=PROJECT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        yield child
        child.wait()
    except BaseException:
        end_group(child)
        raise
