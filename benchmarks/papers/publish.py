"""The pages of results/ brought up to date with what was just run."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.papers.cells import Cell
from benchmarks.papers.conformance_section import format_conformance
from benchmarks.papers.document import format_page, format_section, update_summary
from benchmarks.papers.registry import read_registry
from benchmarks.papers.verdicts import judge, missing
from include.atomic_write import write_text


def publish(papers: Sequence[str], cells: Iterable[Cell], folder: Path, plots: Path) -> list[str]:
    """Write papers.md and the pages of the papers that ran; parts of others stay as they are.

    Args:
        papers: that ran.
        cells: their figures.
        folder: of the pages.
        plots: folder of the plots that were just drawn.

    Returns:
        The cells of the registry that should have come out of the run and did not.

    Raises:
        RegistryError: a registry cannot be used.
    """
    everything, sections, absent = list(cells), {}, []
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    for paper in papers:
        registry = read_registry(paper)
        items = judge(registry, [cell for cell in everything if cell.paper == paper])
        absent += [f"{paper}: {one}" for one in missing(items)]
        write_text(folder / f"{paper}.md", format_page(paper, registry, items))
        sections[paper] = format_section(paper, registry, items)
        for plot in registry.plots:
            if (plots / plot.file).exists():
                shutil.copyfile(plots / plot.file, images / plot.file)
    page = folder / "papers.md"
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    write_text(page, update_summary(before, sections, format_conformance()))
    return absent
