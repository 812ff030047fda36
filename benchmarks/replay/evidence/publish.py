"""Writes the published costs, and from them the tables and the figure of README.md and docs/replay.md."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from benchmarks.live.publish import read_simulator_error
from benchmarks.replay.cost_rows import write_costs
from benchmarks.replay.cost_summary import describe_bound, summarise
from benchmarks.replay.evidence.fingerprints import read_fingerprints
from benchmarks.replay.evidence.frontier_curves import build_equal_lateness, draw_frontier
from benchmarks.replay.evidence.load_classes import RULE, measure_load
from benchmarks.replay.evidence.published_costs import COSTS, read_published, select_study
from benchmarks.replay.evidence.studies import Study, read_studies
from benchmarks.replay.evidence.study_tables import (
    Cells,
    build_classes,
    build_loads,
    build_over_bound,
    build_readme_table,
    build_segments,
    describe_study,
    list_left_out,
)
from benchmarks.replay.evidence.unit_rows import read_rows
from benchmarks.replay.replay_cases import Row
from benchmarks.replay.split import TRACES, Piece, read_piece
from benchmarks.replay.tables import PUBLISHED, format_table
from include.atomic_write import write_text
from include.settings import PROJECT
from tools.marked_page import put_between_marks

README, PAGE = PROJECT / "README.md", PROJECT / "docs" / "replay.md"
FIGURE: Final = PROJECT / "docs" / "images" / "frontier.png"
CLASSES: Final = PUBLISHED / "load_classes.csv"
README_MARKS: Final = "<!-- replay: written by benchmarks.replay.evidence -->\n", "<!-- end of replay -->"
PAGE_MARKS: Final = "<!-- studies: written by benchmarks.replay.evidence -->\n", "<!-- end of studies -->"


def publish(studies: Mapping[str, Study], out: Path, fingerprints: Mapping[str, str], unseen: Path) -> list[Path]:
    """Write the costs of all units that have run, the classes of their loads, the pages and the figure; return them.

    Args:
        studies: by name.
        out: folder of the rows of the units.
        fingerprints: of today's decisions, by policy.
        unseen: folder of the traces that are not shipped.
    """
    rows: list[Row] = []
    for unit in sorted({unit for study in studies.values() for unit in study.list_units()}, key=str):
        rows += read_rows(unit, out, fingerprints.get(unit.policy, "")) or []
    write_costs(rows, COSTS)
    write_text(CLASSES, format_classes(sorted({trace for study in studies.values() for trace in study.traces}), unseen))
    pages = format_pages(studies)
    for path, text in pages.items():
        write_text(path, text)
    frontier = studies["frontier"]
    chosen = select_study(rows, frontier)
    if chosen:
        draw_frontier(chosen, frontier.traces, FIGURE)
    return [COSTS, CLASSES, *pages, *([FIGURE] if chosen else [])]


def format_classes(traces: Sequence[str], unseen: Path) -> str:
    """Return the measures and the class of the first eight days of each trace as CSV."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    for place, trace in enumerate(traces):
        measures = measure_load(read_piece(Piece(trace, 0, 0), (TRACES, unseen)).cut_days(8.0).values)
        known = asdict(measures)
        if not place:
            writer.writerow(["trace", "class", *known])
        writer.writerow([trace, measures.name, *(f"{value:.4f}" for value in known.values())])
    return written.getvalue()


def wrap_line(text: str) -> str:
    """Return a paragraph in lines of ordinary length, as README.md has them."""
    return textwrap.fill(text, 98, break_long_words=False, break_on_hyphens=False)


def read_classes(path: Path = CLASSES) -> dict[str, str]:
    """Return trace -> class of its load."""
    with path.open(newline="", encoding="utf-8") as file:
        return {row["trace"]: row["class"] for row in csv.DictReader(file)}


def format_pages(studies: Mapping[str, Study] | None = None) -> dict[Path, str]:
    """Return the pages as they are written from the published files.

    Raises:
        StaleRowsError: a row's policy decides otherwise today.
    """
    known = studies or read_studies()
    rows, classes = read_published(read_fingerprints()), read_classes()
    test = select_study(rows, known["test"])
    about = f"{describe_study(known['test'].about, test)} {read_simulator_error()}"
    readme = f"{wrap_line(about)}\n\n{format_table(build_readme_table(test))}\n"
    if without_row := list_left_out(test):
        named = ", ".join(without_row)
        readme += f"\n{wrap_line(f'Without a run of the code of today: {named}.')}\n"
    parts = [*_describe_test(known["test"], test, classes), *_describe_frontier(known, rows, classes)]
    tuning = select_study(rows, known["tuning"])
    if tuning:
        parts += ["### On tuning traces", describe_study(known["tuning"].about, tuning), summarise(tuning)]
        parts += ["By class:", build_classes(tuning, _select_classes(classes, known["tuning"]))]
    for name, title in (("waits", "Where changes take their time"), ("scenarios", "Where plans should lose")):
        study = known[name]
        chosen = select_study(rows, study)
        if chosen:
            parts += [f"### {title}", describe_study(study.about, chosen), build_loads(chosen, study.policies)]
    parts.insert(0, read_simulator_error())
    texts = [part if isinstance(part, str) else format_table(part) for part in parts]
    page = "\n\n".join(texts) + "\n"
    return {
        README: put_between_marks(README.read_text(encoding="utf-8"), README_MARKS, readme),
        PAGE: put_between_marks(PAGE.read_text(encoding="utf-8"), PAGE_MARKS, page),
    }


def _select_classes(classes: Mapping[str, str], study: Study) -> dict[str, str]:
    return {trace: classes[trace] for trace in study.traces}


def _describe_test(study: Study, rows: Sequence[Row], classes: Mapping[str, str]) -> list[str | Cells]:
    own = _select_classes(classes, study)
    return [
        "### Every policy on the test traces",
        f"{describe_study(study.about, rows)} Costs after the first day; ratios are geometric means, intervals (95%) "
        "from a bootstrap over traces and seeds. Bold: the default, and what is cheaper.",
        describe_bound(rows),
        summarise(rows),
        "Cost over the bound by trace:",
        build_over_bound(rows),
        "### Over the cheaper of our other two, by segment",
        "`planner` and `controller_alone`; mean of the seeds, in brackets the worst seed.",
        build_segments(rows, own),
        "### By class of load",
        f"{RULE} Measures of each trace: `benchmarks/replay/published/load_classes.csv`.",
        build_classes(rows, own),
    ]


def _describe_frontier(
    studies: Mapping[str, Study], rows: Sequence[Row], classes: Mapping[str, str]
) -> list[str | Cells]:
    study = studies["frontier"]
    chosen, own = select_study(rows, study), _select_classes(classes, study)
    if not chosen:
        return []
    by_class = {name: [one for one in own if own[one] == name] for name in sorted(set(own.values()))}
    groups = {"all": list(own), **by_class}
    return [
        "### Slot-hours at equal late minutes",
        f"{describe_study(study.about, chosen)} Slot-hours a day where every policy is late for as many minutes a day "
        "as the default: ours over the best rival's and over the controller's alone, below 1 is better.",
        build_equal_lateness(chosen, groups),
        "![Late minutes against slot-hours and rescales, a curve per policy](images/frontier.png)",
    ]
