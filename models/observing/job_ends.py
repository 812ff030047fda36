"""Jobs that came to their end, told apart from jobs that were stopped to be deployed again.

Flink shows both alike: a job that was stopped with a savepoint is FINISHED, as is one whose bounded sources have been
read, and a job that was cancelled may have been cancelled for good.  The rule, of a run that ended FINISHED or CANCELED
and a later one of the same name under another id:

1. A batch job never goes on where another one was.
2. The later run came to run within :data:`GOES_ON_WITHIN_S` of the end; else the job had ended, and began anew.
3. After CANCELED that is enough: somebody stopped it and soon deployed it again.
4. After FINISHED the state has to go on: the later run was restored from a checkpoint or savepoint, or the former one
   ended with a savepoint.  Where no reply tells of the later run's checkpoints, the former has to have run for at least
   :data:`LONGER_THAN_THE_PAUSE` times as long as the pause: a job that ends by itself pauses about as long as it runs.

A run of which no reply shows the end (its JobManager went with it, say) was interrupted, as was one that FAILED.
"""

from __future__ import annotations

from dataclasses import dataclass

GOES_ON_WITHIN_S = 900.0
LONGER_THAN_THE_PAUSE = 4.0
SAVEPOINT_WITHIN_S = 60.0
"""A job that is stopped with a savepoint finishes so soon after it."""
_CANCELED = "CANCELED"


@dataclass(frozen=True, slots=True)
class JobLifetime:
    """What replies tell of the beginning and the end of a job id; times in epoch milliseconds.

    Attributes:
        is_batch: whether Flink calls it a batch job.
        end_state: the last state in which it had ended without failure; None without one.
        ended_ms: when it ended so; None where no reply shows it.
        is_restored: whether it began with the state of another run; None where no reply tells of its checkpoints.
        savepoint_ms: when its last savepoint was completed; None without one.
    """

    is_batch: bool = False
    end_state: str | None = None
    ended_ms: int | None = None
    is_restored: bool | None = None
    savepoint_ms: int | None = None


def goes_on(former: JobLifetime, later: JobLifetime, *, ran_since_ms: int, running_ms: int) -> bool:
    """Return whether a job goes on in a run under another id; of a former one without an end, it does.

    ``ran_since_ms`` is when the last run of the former id came to run, ``running_ms`` when the first of the other did.
    """
    ended_ms = former.ended_ms
    if ended_ms is None:
        return True
    pause_ms = running_ms - ended_ms
    if former.is_batch or pause_ms > GOES_ON_WITHIN_S * 1000:
        return False
    if former.end_state == _CANCELED:
        return True
    saved_ms = former.savepoint_ms
    if saved_ms is not None and abs(ended_ms - saved_ms) <= SAVEPOINT_WITHIN_S * 1000:
        return True
    if later.is_restored is not None:
        return later.is_restored
    return ended_ms - ran_since_ms >= LONGER_THAN_THE_PAUSE * pause_ms
