"""Plans by a challenger beside those by the champion: from silver to the sentence and tables of a training's run."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import pytest
from delta_tables import write_rows
from pyspark.sql import SparkSession

from benchmarks.pipeline.packed_models import pack_models
from include import tables
from include.settings import Settings
from spark_jobs.lake import Lake
from spark_jobs.train.plan_costs import compare_on_sample
from tests.spark import synthetic_fleet as fleet

pytestmark = [pytest.mark.spark, pytest.mark.long]
WINDOW = timedelta(minutes=5)
DAYS = {"orders": 5.5, "clicks": 5.5, "young": 0.5}


def load_at(hour: float) -> float:
    return 60_000.0 + 40_000.0 * math.sin((hour - 8.0) * math.pi / 12.0)


def test_jobs_that_both_know_are_compared_and_listed(spark: SparkSession, settings: Settings, lake: Lake) -> None:
    write_rows(lake, tables.JOB_GRAPHS, [row for job in DAYS for row in fleet.graph_rows(job)])
    ends = ((job, fleet.AS_OF - back * WINDOW) for job, days in DAYS.items() for back in range(round(days * 288)))
    rows = [fleet.observation_rows(job, end, load_at(end.hour + end.minute / 60), windows=1)[0] for job, end in ends]
    write_rows(lake, tables.OBSERVATIONS, rows)
    models = fleet.job_models()
    slower = {
        name: replace(one, mean_per_s=0.6 * one.mean_per_s, observed_per_s=0.6 * one.observed_per_s)
        for name, one in models.capacity.items()
    }
    champion = pack_models("m0", dict.fromkeys([(fleet.CLUSTER, job) for job in DAYS], models))
    known = [(fleet.CLUSTER, job) for job in (*DAYS, "new")]
    challenger = pack_models("m1", dict.fromkeys(known, replace(models, capacity=slower)))

    same = compare_on_sample(lake, settings, fleet.AS_OF, champion, champion)
    assert (same.asked, same.difference.jobs, same.difference.mean) == (3, 2, 0.0)  # one is too young
    assert same.sentence.startswith("no difference")

    other = compare_on_sample(lake, settings, fleet.AS_OF, champion, challenger)
    assert list(other.costs["job"]) == ["clicks", "orders"]
    assert (other.costs["difference"] != 0.0).all()
    assert set(other.other_steps["job"]) == {"clicks", "orders"}
    assert "on 2 of 3 jobs" in other.sentence
    one = settings.model_copy(update={"training": settings.training.model_copy(update={"plan_cost_jobs": 1})})
    assert compare_on_sample(lake, one, fleet.AS_OF, champion, champion).asked == 1
