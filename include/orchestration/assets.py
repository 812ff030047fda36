"""The lake's tables as Airflow assets: which stage reads and writes what, so that Airflow shows the lineage."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.sdk import Asset

from include import tables
from include.stages import Stage
from include.tables import Table

SCHEME = "x-tidewise"
"""Airflow takes schemes that begin with ``x-`` as they are."""


def _asset(name: str) -> Asset:
    """Return an asset; its URI names what it is and not where it lies, which is a setting and may move."""
    return Asset(name=name, uri=f"{SCHEME}://{name.replace('.', '/', 1)}", group="tidewise")


RAW = _asset("raw.payloads")
MODELS = _asset("mlflow.fleet_bundle")
COMPARISONS = _asset("mlflow.comparisons")
ADVICE = _asset("advice.page")
PAGE = _asset("report.page")


def asset_of(table: Table) -> Asset:
    """Return the asset of a table."""
    return _asset(table.name)


CONTROLLED = [asset_of(table) for table in tables.CONTROLLED]
"""What the controller writes besides raw files."""

_BRONZE_AND_SILVER = (
    tables.BRONZE_METRICS,
    tables.BRONZE_JOB_EVENTS,
    tables.QUARANTINE,
    tables.FILES,
    tables.QUALITY,
    tables.OBSERVATIONS,
    tables.JOB_GRAPHS,
    tables.JOBS,
    tables.OPERATOR_KEYS,
    tables.RESCALES,
)
_SILVER = (tables.OBSERVATIONS, tables.JOB_GRAPHS, tables.JOBS, tables.OPERATOR_KEYS, tables.RESCALES)
_COMPARED = (tables.BACKTESTS, tables.CERTIFICATES)
_SHOWN = (
    *(tables.PLANS, tables.CONTROL_LOG, tables.FORECASTS, tables.RESCALES, tables.QUALITY, *_COMPARED),
    tables.OBSERVATIONS,
)
_PROFILED = (tables.OBSERVATIONS, tables.JOB_GRAPHS)


def application_inlets(stages: Sequence[Stage]) -> list[Asset]:
    """Return what stages of one application read, without what an earlier one of them writes."""
    written: dict[str, Asset] = {}
    result: dict[str, Asset] = {}
    for stage in stages:
        result |= {asset.name: asset for asset in inlets(stage) if asset.name not in written}
        written |= {asset.name: asset for asset in outlets(stage)}
    return list(result.values())


def application_outlets(stages: Sequence[Stage]) -> list[Asset]:
    """Return what stages of one application write; assets of Airflow 3.1 have no hash, so names tell them apart."""
    return list({asset.name: asset for stage in stages for asset in outlets(stage)}.values())


def inlets(stage: Stage) -> list[Asset]:
    """Return what a stage reads."""
    reads: dict[Stage, list[Asset]] = {
        Stage.INGEST: [RAW],
        Stage.TRAIN: [asset_of(table) for table in _SILVER],
        Stage.LEARN: [asset_of(tables.OBSERVATIONS), asset_of(tables.JOB_GRAPHS), MODELS],
        Stage.FORECAST: [
            asset_of(table) for table in (tables.OBSERVATIONS, tables.JOB_GRAPHS, tables.JOBS, tables.OPERATOR_KEYS)
        ],
        Stage.PROFILE: [*(asset_of(table) for table in (*_PROFILED, tables.POLICY_MEMORY)), MODELS],
        Stage.PLAN: [*(asset_of(table) for table in (*_SILVER, tables.FORECASTS, tables.POLICY_MEMORY)), MODELS],
        Stage.BACKTEST: [
            asset_of(tables.OBSERVATIONS),
            asset_of(tables.JOB_GRAPHS),
            asset_of(tables.OPERATOR_KEYS),
            asset_of(tables.RESCALES),
            MODELS,
        ],
        Stage.ADVISE: [*(asset_of(table) for table in _SILVER), MODELS],
        Stage.REPORT: [*map(asset_of, _SHOWN), MODELS],
    }
    return reads[stage]


def outlets(stage: Stage) -> list[Asset]:
    """Return what a stage writes."""
    writes: dict[Stage, list[Asset]] = {
        Stage.INGEST: [asset_of(table) for table in _BRONZE_AND_SILVER],
        Stage.TRAIN: [*map(asset_of, (tables.JOB_WINDOWS, tables.MODEL_VERSIONS, tables.MODEL_JOBS)), MODELS],
        Stage.LEARN: [asset_of(tables.POLICY_MEMORY)],
        Stage.FORECAST: [asset_of(one) for one in (tables.SOURCE_LOADS, tables.FORECASTS, tables.FORECAST_SCORES)],
        Stage.PROFILE: [asset_of(tables.PROFILES), asset_of(tables.POLICY_MEMORY)],
        Stage.PLAN: [asset_of(tables.PLANS), asset_of(tables.POLICY_MEMORY)],
        Stage.BACKTEST: [*map(asset_of, _COMPARED), COMPARISONS],
        Stage.ADVISE: [ADVICE],
        Stage.REPORT: [*map(asset_of, (tables.JOB_DAYS, tables.STEP_RESULTS, tables.EVENT_RESULTS)), PAGE],
    }
    return writes[stage]


def list_assets() -> list[Asset]:
    """Return all of them."""
    written = [asset for stage in Stage for asset in outlets(stage)]
    return list(dict.fromkeys([RAW, *CONTROLLED, *written]))
