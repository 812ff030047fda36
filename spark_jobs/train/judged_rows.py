"""The windows that judge a training's models as rows, of all jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from models.training.job_tests import JobTests, Measured
from models.training.train_job import Learnt
from spark_jobs.train.day_windows import JOB, OPERATOR


def held_rows(learnt: Sequence[Learnt]) -> pd.DataFrame:
    """Return one row per held-back capacity: OPERATOR columns, ``parallelism``, ``capacity_per_s``, ``idle``."""
    return _capacity_rows(learnt, lambda tests: tests.held).drop(columns="start_s")


def hour_rows(learnt: Sequence[Learnt]) -> pd.DataFrame:
    """Return one row per operator, parallelism and hour ahead of the trial: as held_rows, and ``hour``."""
    rows = _capacity_rows(learnt, lambda tests: tests.hours)
    return rows.assign(hour=pd.to_datetime(rows.pop("start_s"), unit="s"))


def _capacity_rows(learnt: Sequence[Learnt], choose: Callable[[JobTests], Measured]) -> pd.DataFrame:
    parts = [_rows_of(one, choose(one.tests)) for one in learnt]
    return pd.concat(parts, ignore_index=True)


def _rows_of(learnt: Learnt, measured: Measured) -> pd.DataFrame:
    names = np.array(learnt.tests.operators, object)[measured.operator]
    return pd.DataFrame(
        {
            **dict(zip(OPERATOR, (*learnt.facts.job, names), strict=True)),
            "parallelism": measured.parallelism,
            "start_s": measured.start_s,
            "capacity_per_s": measured.capacity_per_s,
            "idle": measured.idle,
        }
    )


def held_window_rows(learnt: Sequence[Learnt]) -> pd.DataFrame:
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
