"""2,000 mutated lines through one ingestion; `make fuzz` for more."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include.settings import SETTINGS_FILE_VARIABLE
from include.stage_names import Stage
from include.stage_request import StageRequest
from spark_jobs.ingest import stage as ingest
from spark_jobs.lake import Lake
from tests.fuzz.checks import find_violations, outcomes
from tests.fuzz.line_mutations import MUTATIONS
from tests.fuzz.world import END, START, write_world
from tests.spark.lake_settings import settings_below

pytestmark = [pytest.mark.spark, pytest.mark.long]
LINES = 2_000
SEED = 1


@pytest.mark.covers("ingest_review 1", "ingest_review 2")
def test_no_line_is_lost_and_no_good_one_is_changed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTINGS_FILE_VARIABLE, str(tmp_path / "none.toml"))
    settings = settings_below(tmp_path)
    world = write_world(Path(settings.paths.raw), LINES, SEED)
    assert world.mutated > 0.9 * LINES
    ingest.run(spark, settings, StageRequest(Stage.INGEST, END, START, END))
    lake = Lake(spark, settings.paths.lake)
    assert list(islice(find_violations(world, lake), 10)) == []
    result = outcomes(world, lake)
    assert result.keys() >= MUTATIONS.keys()
    assert sum(result["text: two records, comma"].values()) == result["text: two records, comma"]["malformed_json"] > 0
