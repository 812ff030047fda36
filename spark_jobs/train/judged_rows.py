"""The windows that judge a training's models as rows, of all jobs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from models.training.job_tests import MeasuredCapacities
from models.training.train_job import LearnedJob
from spark_jobs.train.day_windows import JOB, OPERATOR


def held_rows(learnt: Sequence[LearnedJob]) -> pd.DataFrame:
    """Return one row per held-back capacity: OPERATOR columns, ``parallelism``, ``capacity_per_s``, ``idle``."""
    return pd.concat([_rows_of(one, one.tests.held) for one in learnt], ignore_index=True)


def hour_rows(learnt: Sequence[LearnedJob]) -> pd.DataFrame:
    """Return one row per operator, parallelism and hour ahead of the trial: as held_rows, and ``hour``."""
    parts = [
        _rows_of(one, hours).assign(hour=pd.to_datetime(hours.start_s, unit="s"))
        for one in learnt
        for hours in [one.tests.hours]
    ]
    return pd.concat(parts, ignore_index=True)


def _rows_of(learnt: LearnedJob, measured: MeasuredCapacities) -> pd.DataFrame:
    names = np.array(learnt.tests.operators, object)[measured.operator]
    return pd.DataFrame(
        {
            **dict(zip(OPERATOR, (*learnt.facts.job, names), strict=True)),
            "parallelism": measured.parallelism,
            "capacity_per_s": measured.capacity_per_s,
            "idle": measured.idle,
        }
    )


def held_window_rows(learnt: Sequence[LearnedJob]) -> pd.DataFrame:
    """Return one row per held-back window of a job: JOB columns, ``utilisation``, ``latency_ms``."""
    parts = [
        pd.DataFrame(
            {
                **dict(zip(JOB, one.facts.job, strict=True)),
                "utilisation": one.tests.held_utilisation,
                "latency_ms": one.tests.held_latency_ms,
            }
        )
        for one in learnt
    ]
    return pd.concat(parts, ignore_index=True)
