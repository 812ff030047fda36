"""Settings that load can start every stage on an empty lake: a handful of unlike ones, in one session."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from include.settings import Settings, check_settings
from include.stage_names import PROFILING, Stage
from include.stage_request import StageRequest
from spark_jobs.model_store import NoChampionError
from spark_jobs.train.stage import NothingToLearnError

AS_OF = datetime(2026, 11, 20, 18, tzinfo=UTC)
# What these need is named: observations to learn from, and the models of a training.
REFUSED = {Stage.TRAIN: NothingToLearnError, PROFILING: NoChampionError, "advise": NoChampionError}
DRAWN: dict[str, dict[str, Any]] = {
    "defaults": {},
    "short": {
        "planner": {"horizon_h": 1, "bin_s": 3600, "observed_h": 0.1},
        "forecast": {"horizon_h": 1, "bin_s": 10, "history_days": 1},
        "training": {"lookback_days": 1},
        "backtest": {"days": 1, "learning_days": 0, "policies": ["static"]},
        "clusters": {"a": {"window_s": 5, "slots_max": 1, "slots_total": 1}},
    },
    "long": {
        "planner": {"horizon_h": 168, "bin_s": 86_400, "policy": "mdp", "policies": {"a/b": "phoebe"}},
        "forecast": {"horizon_h": 168, "bin_s": 3600, "history_days": 60, "time_zones": {"a": "Asia/Kolkata"}},
        "policies": {"mdp": {"least_slots": 3, "weights": {"resources": 0.4, "violation": 0.2}}},
        "clusters": {"a": {"window_s": 3600, "slots_max": 32_768, "slots_total": 9}, "b": {}},
        "schedules": {"control": "0 9-17 * * 1-5"},
    },
    "reactive": {
        "planner": {"policy": "conttune_a3"},
        "policies": {"conttune_a3": {"alpha": 0, "thresholds": {"core_min": 0.5}}},
        "ingest": {"late_allowance_h": 0, "settle_s": 0, "max_clock_skew_s": 0},
        "apply": {"tick_s": 1},
        "limits": {"cooldown_s": 0},
    },
}

# `make test` has each stage on a lake that is not empty, and refusals of settings in tests/unit.
pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.mark.parametrize("name", DRAWN)
def test_every_stage_starts_on_an_empty_lake(spark: SparkSession, settings: Settings, name: str) -> None:
    own = settings.model_dump(include={"paths", "spark", "mlflow"}, mode="json")
    drawn = check_settings(own | DRAWN[name])
    for stage in Stage:
        request = StageRequest(stage, AS_OF, AS_OF - timedelta(hours=1), AS_OF)
        run = importlib.import_module(f"spark_jobs.{stage}.stage").run
        if stage in REFUSED:
            with pytest.raises(REFUSED[stage]):
                run(spark, drawn, request)
        else:
            assert isinstance(run(spark, drawn, request), dict)
