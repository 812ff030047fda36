"""How jobs are profiled (Phoebe III-C), and on what."""

from __future__ import annotations

import re
import string
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from include.settings.connection import Connection, check_http_url
from include.settings.names import JobKey
from include.settings.section import SLOTS_MAX, Section, Text
from include.utc import DAY_S, HOUR_S

SIMULATED, FLINK = "simulated", "flink"
PLACEHOLDERS = ("job_name", "parallelism", "rate_per_s", "trace")


_MOVED = {
    "spark_jobs.profiling": "lab.stages.profiling",
    "models.profiling": "lab.profiling",
    "models.simulation": "lab.simulation",
}


def _adapter(text: str) -> str:
    for before, now in _MOVED.items():
        if text.startswith((f"{before}.", f"{before}:")):
            raise ValueError(f'this module has moved; write "{now}{text.removeprefix(before)}"')
    if text not in {SIMULATED, FLINK} and not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", text):
        raise ValueError('must be "simulated", "flink" or "module:function" of an adapter; write "simulated", say')
    return text


def _argument(text: str) -> str:
    try:
        fields = [field for _, field, _, _ in string.Formatter().parse(text) if field is not None]
    except ValueError as error:
        raise ValueError(f"{text!r} cannot be filled in ({error}); write {{{{ for a brace") from error
    unknown = sorted(set(fields) - set(PLACEHOLDERS))
    if unknown:
        raise ValueError(f"{text!r} has {{{unknown[0]}}}; write one of {', '.join(PLACEHOLDERS)}")
    return text


Argument = Annotated[str, AfterValidator(_argument)]


class ProfiledJob(Section):
    """How a side deployment of one job is started on a real cluster.

    In arguments {job_name}, {parallelism}, {rate_per_s} and {trace} are filled in; the last is a file of lines
    "second,rate_per_s" in `trace_dir`.
    """

    jar: Text = Field(description="file with the job; it is uploaded to the cluster of the side deployments")
    entry_class: Text = Field(description="its main class")
    arguments: tuple[Argument, ...] = Field((), description="of the program, for a replay at one rate")
    backlog_arguments: tuple[Argument, ...] = Field(
        (), description="the same for the run under a backlog that never ends; none: ten times the highest rate"
    )

    @model_validator(mode="after")
    def _scale_out_is_given(self) -> ProfiledJob:
        for key, arguments in (("arguments", self.arguments), ("backlog_arguments", self.backlog_arguments)):
            if (key == "arguments" or arguments) and not any("{parallelism}" in one for one in arguments):
                raise ValueError(
                    f'{key} do not say with which parallelism the job runs; write "--parallelism", "{{parallelism}}"'
                )
        return self


class Profiling(Section):
    """How a job is profiled (Phoebe III-C), and on what."""

    adapter: Annotated[Text, AfterValidator(_adapter)] = Field(
        SIMULATED, description='"simulated", "flink" (side deployments), or "module:function" of another adapter'
    )
    scale_out_min: int = Field(
        2, ge=1, le=SLOTS_MAX, description="smallest scale-out profiled; the largest is the cluster's slots_max"
    )
    scale_outs: int = Field(8, ge=3, le=1000, description="deployments that run side by side")
    rate_steps: int = Field(
        20, ge=2, le=10_000, description="steps up to slots_max times the highest load seen on one worker"
    )
    rate_steps_max: int = Field(
        60, ge=2, le=10_000, description="the replay ends after so many steps though some deployment still keeps up"
    )
    settle_s: int = Field(300, ge=0, le=DAY_S, description="s; a step settles for so long before it is measured")
    window_s: int = Field(120, ge=10, le=DAY_S, description="s; for so long a step is measured")
    rest_url: Annotated[Text, AfterValidator(check_http_url)] | None = Field(
        None, description="REST address of the Flink cluster for side deployments; it should be none that is observed"
    )
    connection: Connection = Connection()
    trace_dir: Text | None = Field(
        None, description="folder for the files of {trace}, which the JobManager of that cluster can read"
    )
    start_timeout_s: float = Field(180.0, gt=0, le=HOUR_S, description="s; a side deployment has to run within this")
    jobs: dict[JobKey, ProfiledJob] = Field(
        default_factory=dict, description='"cluster/job" = how its side deployments are started'
    )

    @model_validator(mode="after")
    def _enough_steps(self) -> Profiling:
        if self.rate_steps > self.rate_steps_max:
            raise ValueError(
                f"rate_steps = {self.rate_steps} is above rate_steps_max = {self.rate_steps_max}, so the replay would "
                f"end before the highest load; write rate_steps_max = {self.rate_steps} or more"
            )
        return self

    @model_validator(mode="after")
    def _cluster_is_given(self) -> Profiling:
        if self.adapter == FLINK and self.rest_url is None:
            raise ValueError(
                'adapter = "flink" needs the cluster for side deployments; '
                'write rest_url = "http://jobmanager:8081", say'
            )
        for name, job in self.jobs.items():
            uses_trace = any("{trace}" in one for one in (*job.arguments, *job.backlog_arguments))
            if uses_trace and self.trace_dir is None:
                raise ValueError(
                    f'jobs."{name}" reads {{trace}}, but there is no trace_dir; write trace_dir = "/tmp", say'
                )
        return self
