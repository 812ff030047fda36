"""Names of jobs and operators: whatever they hold, plots are drawn and the page shows them as text."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console
from saved_page import AS_OF, save, step_row, write_jobs
from strange_names import STRANGE_NAMES

from benchmarks.pipeline.packed_models import pack_models
from cli.run_table import plan_table
from include.short_names import NO_NAME, shorten_name
from models.bundle.fleet_bundle import FleetBundle
from models.bundle.job_models import CapacityCurve, JobModels, LatencyModel
from models.recovery.recovery_model import UNTRAINED
from page.rendering import anchor_of
from spark_jobs.plot_text import plot_text
from spark_jobs.train.training_plots import capacity_figure

pytestmark = pytest.mark.filterwarnings("ignore:Glyph .* missing from font")


@pytest.mark.parametrize("name", STRANGE_NAMES)
@pytest.mark.covers("apply_review 7")
def test_matplotlib_draws_any_name_letter_by_letter(name: str) -> None:
    figure = Figure(figsize=(3, 1))
    title = figure.subplots().set_title(plot_text(name))
    figure.savefig(io.BytesIO(), format="png")
    text, mathematics = title._preprocess_math(title.get_text())
    assert not mathematics
    assert text == shorten_name(name, 64)


def test_the_names_of_this_test_do_stop_a_plot_that_does_not_escape_them() -> None:
    figure = Figure()
    figure.subplots().set_title("Foo$$Lambda$14/0x00$x")
    with pytest.raises(ValueError, match="x"):
        figure.savefig(io.BytesIO(), format="png")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("orders", "orders"),
        ("", NO_NAME),
        (" \n ", NO_NAME),
        ("a\tb\x00c\nd", "a b c d"),
        ("x" * 4096, "x" * 40 + "…" + "x" * 19),
        ("\ud800x", "x"),
        ("🚀 go", "🚀 go"),
    ],
)
def test_a_name_is_shown_on_one_short_line(name: str, shown: str) -> None:
    assert shorten_name(name) == shown


@pytest.mark.covers("apply_review 7")
def test_the_curves_of_a_fleet_with_strange_names_are_drawn() -> None:
    p = np.arange(1, 9)
    curve = CapacityCurve(p, 100.0 * p, 5.0 * p, p[:3], 100.0 * p[:3], 100.0)
    models = JobModels(
        dict.fromkeys(STRANGE_NAMES, curve),
        dict.fromkeys(STRANGE_NAMES, 1.0),
        UNTRAINED,
        LatencyModel(np.zeros(0), np.zeros(0)),
    )
    bundle = pack_models("m", {("c", name): models for name in STRANGE_NAMES})
    capacity_figure(FleetBundle.from_bytes(bundle.to_bytes())).savefig(io.BytesIO(), format="png")


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The saved page with a job of every name, whose operator has it too, and one of an ordinary name."""
    lake = tmp_path_factory.mktemp("lake")
    rows = [step_row(name, parallelism_to={name: 3}, reason=f"{name} needs 3") for name in STRANGE_NAMES]
    write_jobs(lake, [*rows, step_row("the other")])
    return save(lake)


@pytest.mark.covers("apply_review 7")
@pytest.mark.covers("apply_review 10")
def test_the_page_shows_any_name_as_text_alone(html: str) -> None:
    assert "Not drawn" not in html
    assert re.findall(r"\son\w+\s*=", re.sub(r">[^<]*<", "><", re.sub(r'"[^"]*"', '""', html))) == []
    assert re.search(r"<script|(src|href)=\"(?!#)", html) is None
    assert html.count('<main class="part" id="job-') == len(STRANGE_NAMES) + 1
    for drawing in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        ET.fromstring(drawing)
    assert len(html) < 60_000 * len(STRANGE_NAMES)  # four kilobytes of a name are not written everywhere
    assert "Content-Security-Policy" in html


def test_two_jobs_have_two_anchors_though_their_letters_are_alike() -> None:
    names = ["a b", "a-b", "", "-"]
    assert len(set(map(anchor_of, names))) == 4
    assert all(re.fullmatch(r"job-[0-9a-f]{16}", anchor_of(name)) for name in STRANGE_NAMES)


@pytest.mark.parametrize("name", STRANGE_NAMES)
def test_the_table_of_make_run_prints_any_name(name: str) -> None:
    planned = {
        "cluster": name,
        "job": name,
        "status": "planned",
        "apply_at": f"{AS_OF:%Y-%m-%dT%H:%M:%SZ}",
        "parallelism_from": {name: 1},
        "parallelism_to": {name: 2},
        "expected_load_q50_per_s": 1.0,
        "expected_load_q90_per_s": 1.0,
        "expected_capacity_per_s": 1.0,
        "slots_from": 1,
        "slots": 2,
        "slot_hours_saved": 1.0,
        "reason": name,
        "refusal": None,
    }
    console = Console(file=io.StringIO(), width=160)
    console.print(plan_table([planned, planned | {"status": "hold"}]))
