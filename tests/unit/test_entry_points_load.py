"""What the product starts loads none of the laboratory, and no more of the product than it needs."""

from __future__ import annotations

import pytest

from include.settings import PROJECT
from tools.entry_points import PRODUCT, close_each, import_each, list_entry_points, of_laboratory, read_sources
from tools.structure import measure_revision

MOST_MODULES = {
    "stage ingest": 170,
    "stage train": 275,
    "stage forecast": 140,
    "stage plan": 185,
    "stage report": 217,
    "spark-submit": 70,
    "controller": 357,
    "page": 160,
    "DAG tidewise_plan": 110,
    "DAG tidewise_hour": 112,
    "command run": 105,
    "command status": 131,
    "command plan": 132,
}
"""Entry point -> modules of the project that it may import when it starts."""


@pytest.fixture(scope="module")
def imported() -> dict[str, list[str]]:
    points = list_entry_points()
    loaded = import_each(points[name] for name in MOST_MODULES)
    return {name: loaded[points[name]] for name in MOST_MODULES}


@pytest.mark.parametrize("name", MOST_MODULES)
def test_an_entry_point_imports_no_laboratory_and_few_modules(name: str, imported: dict[str, list[str]]) -> None:
    assert of_laboratory(imported[name]) == []
    assert 2 < len(imported[name]) <= MOST_MODULES[name]


def test_no_entry_point_can_import_the_laboratory_later() -> None:
    points = list_entry_points()
    closed = close_each(points.values(), read_sources(PROJECT, (*PRODUCT, "lab")))
    found = {name: of_laboratory(closed[module]) for name, module in points.items()}
    assert {name: modules for name, modules in found.items() if modules} == {}
    assert len(found) > 40


def test_an_import_of_the_laboratory_within_a_function_is_found() -> None:
    sources = {
        "page/app.py": b"def build() -> None:\n    from page import charts\n",
        "page/charts.py": b"from lab.replay import engine\n",
        "lab/replay/engine.py": b"",
        "lab/policies/entries.py": b"",
    }
    assert of_laboratory(close_each(["page.app"], sources)["page.app"]) == ["lab.replay.engine"]


def test_a_revision_is_measured_like_the_checkout() -> None:
    sizes = measure_revision("HEAD")
    assert sizes["product"] == sum(sizes[f"- {folder}"] for folder in PRODUCT) > 50_000
    assert 50_000 < sizes["loaded each hour and night"] < sizes["product"] + sizes["lab"]
    assert sizes["rows of settings"] > sizes["policies"] > 2
