"""Over which scale-outs and rates a job is profiled, from what is known before."""

from __future__ import annotations

from include.settings import Profiling
from models.policies.phoebe.profiling import ProfilingOptions


def profiling_options(settings: Profiling, slots_max: int, worker_load_per_s: float) -> ProfilingOptions:
    """Return scale-outs up to the slots that the job may have, and rates from what one worker was seen to carry.

    Rates grow in ``rate_steps`` steps to ``slots_max`` times that load, and on until no deployment keeps up or
    ``rate_steps_max`` is reached; so a job that was never half loaded is still driven to three times its peak.

    Deviation: the paper gives rates and scale-outs by hand.

    Args:
        settings: of the run.
        slots_max: most workers of the job.
        worker_load_per_s: highest load of the job / its workers then, records/s.

    Raises:
        ValueError: no load was seen.
    """
    if not worker_load_per_s > 0:
        raise ValueError("no load was seen, so there is nothing to replay")
    step = worker_load_per_s * slots_max / settings.rate_steps
    return ProfilingOptions(
        scale_out_min=min(settings.scale_out_min, slots_max),
        scale_out_max=slots_max,
        scale_outs=settings.scale_outs,
        first_rate_per_s=step,
        rate_step_per_s=step,
        settle_s=settings.settle_s,
        window_s=settings.window_s,
        steps_max=settings.rate_steps_max,
    )
