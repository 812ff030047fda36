"""The lake's tables as Airflow assets: which stage reads and writes what, so that Airflow shows the lineage."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.sdk import Asset

from include import stage_catalogue, tables
from include.stage_catalogue import stage_of, stages

SCHEME = "x-tidewise"
"""Airflow takes schemes that begin with ``x-`` as they are."""


def _asset(name: str) -> Asset:
    """Return an asset; its URI names what it is and not where it lies, which is a setting and may move."""
    return Asset(name=name, uri=f"{SCHEME}://{name.replace('.', '/', 1)}", group="tidewise")


RAW = _asset(stage_catalogue.RAW)
CONTROLLED = [_asset(table.name) for table in tables.CONTROLLED]
"""What the controller writes besides raw files."""


def application_inlets(names: Sequence[str]) -> list[Asset]:
    """Return what stages of one application read, without what an earlier one of them writes."""
    written: set[str] = set()
    result: dict[str, Asset] = {}
    for name in names:
        result |= {one: _asset(one) for one in stage_of(name).reads if one not in written}
        written |= set(stage_of(name).writes)
    return list(result.values())


def application_outlets(names: Sequence[str]) -> list[Asset]:
    """Return what stages of one application write; assets of Airflow 3.1 have no hash, so names tell them apart."""
    return list({one: _asset(one) for name in names for one in stage_of(name).writes}.values())


def list_assets() -> list[Asset]:
    """Return all of them."""
    written = [_asset(one) for entry in stages().values() for one in entry.writes]
    return list(dict.fromkeys([RAW, *CONTROLLED, *written]))
