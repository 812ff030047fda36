"""What stages are asked to do, as the arguments of one Spark application.

The DAGs build these arguments, ``spark_jobs/launch.py`` reads them: both sides share this file.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from include.stage_catalogue import Span, StageCatalogueError, stage_of
from include.stage_names import Stage
from include.utc import Interval, IntervalError, format_utc, parse_utc


@dataclass(frozen=True, slots=True)
class StageRequest:
    """One run of one stage.

    Attributes:
        stage: which.
        as_of: the time as of which the stage reads the data; nothing later is used. The only "now" it knows.
        start, end: for ingestion, the interval to replace; for advice, the days to appraise; None elsewhere.
        job: for profiling, the one job to profile, as ``cluster/job``; None for every job whose policy uses a profile.
        jobs: for training, a regular expression: models are learnt of those jobs alone, and from them alone, whose
            ``cluster/job`` it matches from the beginning; None for all.
        is_forced: whether rows whose input is gone may be replaced by what is left.
    """

    stage: str
    as_of: datetime
    start: datetime | None = None
    end: datetime | None = None
    job: str | None = None
    jobs: str | None = None
    is_forced: bool = False

    @property
    def interval(self) -> Interval:
        """The interval to ingest or to appraise.

        Raises:
            IntervalError: no start or end was given, or they are not full hours in order.
        """
        if self.start is None or self.end is None:
            raise IntervalError(f"stage {self.stage} needs --start and --end (full hours, UTC)")
        return Interval(self.start, self.end)

    def to_argv(self) -> list[str]:
        """Return the arguments for ``spark_jobs/launch.py``."""
        argv = [str(self.stage), "--as-of", format_utc(self.as_of)]
        if self.start is not None and self.end is not None:
            argv += ["--start", format_utc(self.start), "--end", format_utc(self.end)]
        if self.is_forced:
            argv.append("--force")
        if self.jobs is not None:
            argv.append(f"--jobs={self.jobs}")
        return [*argv, f"--job={self.job}"] if self.job else argv


def parse_requests(argv: Sequence[str]) -> tuple[StageRequest, ...]:
    """Read the arguments of an application: one request for each stage that is named, in that order.

    argparse exits with 2 and a usage line when the arguments are wrong.
    """
    parser = argparse.ArgumentParser(prog="launch.py", description="Run stages of the pipeline, one after the other.")
    parser.add_argument("stages", type=_known, nargs="+", metavar="stage")
    parser.add_argument("--as-of", required=True, type=parse_utc, help="ISO 8601, UTC")
    parser.add_argument("--start", type=parse_utc, help="first full hour to ingest")
    parser.add_argument("--end", type=parse_utc, help="end of the interval to ingest, exclusive")
    parser.add_argument("--job", help="cluster/job to profile; empty: every job whose policy uses a profile")
    parser.add_argument("--jobs", help="regular expression of cluster/job: train only these")
    parser.add_argument(
        "--force",
        nargs="?",
        choices=["yes", "no"],
        const="yes",
        default="no",
        help="replace rows whose input is gone by what is left",
    )
    parser.add_argument("--past", choices=["yes", "no"], default="no", help="only what is about hours: none is planned")
    result = parser.parse_args(argv)
    request = StageRequest(
        Stage.INGEST,
        result.as_of,
        result.start,
        result.end,
        result.job or None,
        result.jobs,
        is_forced=result.force == "yes",
    )
    stages = [one for one in result.stages if result.past == "no" or stage_of(one).span is Span.HOURS]
    return tuple(replace(request, stage=stage) for stage in stages)


def _known(name: str) -> str:
    """Return the name of a stage that there is, for argparse."""
    try:
        stage_of(name)
    except StageCatalogueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name
