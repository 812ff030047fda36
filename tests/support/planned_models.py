"""Models with which the plan stage plans, without a registry."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import pytest

from models.bundle.fleet_bundle import FleetBundle
from spark_jobs.model_store import Champion


def plan_with(patch: pytest.MonkeyPatch, stage: ModuleType, bundle: FleetBundle) -> None:
    """Let the champion be a bundle that no registry has."""
    patch.setattr(stage, "ModelStore", lambda _: SimpleNamespace(read_champion=lambda: Champion(None, bundle)))
