"""Settings of the Spark tests, whose every path lies below one directory."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from include.settings import SETTINGS_FILE_VARIABLE, Cluster, Mlflow, Paths, Settings, Spark

REPOSITORY = Path(__file__).resolve().parents[2]


def settings_below(root: Path) -> Settings:
    """Return settings whose every path lies below ``root``; clusters ``c5m`` (5-minute windows) and ``c15s``."""
    return Settings(
        paths=Paths(lake=str(root / "lake"), raw=str(root / "raw"), out=str(root / "out")),
        spark=Spark(
            master="local[2]",
            driver_memory="2g",
            shuffle_partitions=2,
            jars_dir=str(REPOSITORY / ".cache" / "jars"),
        ),
        mlflow=Mlflow(tracking_uri=f"sqlite:///{root}/mlflow.db", artifact_root=str(root / "mlartifacts")),
        clusters={"c5m": Cluster(window_s=300), "c15s": Cluster(window_s=15, slots_max=8)},
    )


def prepared_settings(root: Path, empty_model_store: Path) -> Settings:
    """Return settings below ``root``, where an empty model store is; no ``tidewise.toml`` reaches into tests."""
    shutil.copy(empty_model_store, root / "mlflow.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SETTINGS_FILE_VARIABLE, str(root / "none.toml"))
        return settings_below(root)
