"""The pages of results/, papers.md and <paper>.md: every cell with its verdict, what contradicts the paper first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from benchmarks.papers.printing import number
from benchmarks.papers.registry import PaperRegistry
from benchmarks.papers.verdicts import Judged, JudgedItem, Verdict, count

NAMES: Mapping[str, str] = {
    "ds2": "DS2",
    "conttune": "ContTune",
    "dragster": "Dragster",
    "mdp_rl": "MDP/RL",
    "phoebe": "Phoebe",
}
_MADE = "<!-- Written by `make papers` from its results and data/papers/registry; edit those. -->"
_HEAD = f"""# The five papers, rerun

{_MADE}

`make papers` reruns the papers' experiments on the project's simulator, prints every table with the published figure
beside ours, and writes `out/papers.json`, the plots, this page and one page per paper. `make papers PAPER=conttune`
runs one and writes its part. Nothing on these pages was run on the papers' clusters; `make papers ARGS="--live"` runs
one experiment per paper on a real Flink cluster. Each system is also a policy that can drive a real job (see
[Choosing a policy](../../../docs/policies.md#choosing-a-policy)).

[changes.md](changes.md), written by `python -m benchmarks.papers.changes --base COMMIT`, has the cells whose verdict is
another than at an earlier commit.

Every cell of every table and figure that a system which decides can have gets a verdict:

- **agrees**: ours is within the tolerance, which is stated per table, with its reason, in `data/papers/registry`;
- **differs**: it is not; the reason stands beside it, or that nobody knows it. These come first everywhere;
- **input, not a result**: the figure went into the simulation, by hand or by calibration, or follows from one that
  did, so that agreement shows nothing. What was fitted and still misses the tolerance differs;
- **no number published**: the paper has words or a plot, which ours does not contradict;
- **same run again**: another cell of a run that is counted elsewhere, or a mean of cells that are;
- **reading chosen**: within the tolerance, under the reading of the paper that its figures need, chosen among others;
- **not attempted**: with the reason;
- **ours alone**: the paper has only a plot or a claim there; or the row is a variant or reading of our own beside the
  paper's, whatever it comes to; or both figures end at the longest time that was measured.
"""
_IN_WORDS = {
    Verdict.DIFFERS: "cells differ",
    Verdict.MISSING: "have no verdict",
    Verdict.AGREES: "agree",
    Verdict.INPUT: "are inputs",
    Verdict.UNPUBLISHED: "have no published number",
    Verdict.SAME_RUN: "are of a run counted elsewhere",
    Verdict.READING: "rest on a chosen reading",
    Verdict.NOT_ATTEMPTED: "not attempted",
    Verdict.OURS_ALONE: "ours alone",
}
_COLUMNS = (
    Verdict.AGREES,
    Verdict.DIFFERS,
    Verdict.INPUT,
    Verdict.UNPUBLISHED,
    Verdict.SAME_RUN,
    Verdict.READING,
    Verdict.NOT_ATTEMPTED,
    Verdict.OURS_ALONE,
)
_BEGIN, _END = "<!-- {}: begin -->", "<!-- {}: end -->"


def format_page(paper: str, registry: PaperRegistry, items: Sequence[JudgedItem]) -> str:
    """Return the page of one paper: its tables in order, each with all its cells."""
    name = NAMES.get(paper, paper)
    lines = [f"# {name}, cell by cell", "", _MADE, "", f"{registry.source} [All papers](papers.md).", ""]
    lines += [f"In all: {_count_verdicts(count(items))}. Within a table the cells that differ come first.", ""]
    for item in items:
        lines += _table(item)
    return "\n".join(lines)


def format_section(paper: str, registry: PaperRegistry, items: Sequence[JudgedItem]) -> str:
    """Return the paper's part of the summary: what contradicts it, then its tables and figures with their counts."""
    name = NAMES.get(paper, paper)
    lines = [f"## {name}", "", f"*{registry.title}*: {_count_verdicts(count(items))}.", ""]
    contradicting = [(item, cell) for item in items for cell in item.of(Verdict.DIFFERS)]
    if contradicting:
        lines += ["| contradicts the paper | ours (published) | because |", "|---|---|---|"]
        alike: dict[tuple[str, str], list[Judged]] = {}
        for item, cell in contradicting:
            alike.setdefault((item.item.label, cell.reason), []).append(cell)
        lines += [f"| {label} | {_in_short(cells)} | {_plain(reason)} |" for (label, reason), cells in alike.items()]
        lines.append("")
    counted = [item for item in items if item.cells]
    lines += [
        f"| [every cell]({paper}.md) | what | agree | differ | input | no number | same run | reading | not attempted "
        "| ours alone | tolerance |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for item in sorted(counted, key=lambda one: not one.of(Verdict.DIFFERS)):
        of_each = count([item])
        counts = " | ".join(str(of_each[verdict] or "") for verdict in _COLUMNS)
        tolerance = str(item.item.tolerance or "")
        lines.append(f"| {item.item.label} | {_plain(item.item.title)} | {counts} | {tolerance} |")
    lines.append("")
    nothing = [f"{item.item.label} ({item.item.nothing})" for item in items if not item.cells]
    if nothing:
        lines += ["No figure that a system could have: " + "; ".join(nothing) + ".", ""]
    lines += [f"{note}\n" for note in registry.notes]
    lines += [f"![{plot.title}](images/{plot.file})" for plot in registry.plots]
    return "\n".join([*lines, ""])


def update_summary(page: str, sections: Mapping[str, str], ending: str = "") -> str:
    """Return the summary with the parts of some papers replaced, the others as they were, in a fixed order.

    Args:
        page: as it is; empty when there is none.
        sections: paper -> its part.
        ending: what follows the papers' parts; empty to keep what is there.
    """
    retained = {paper: _between(page, paper) for paper in NAMES} | {"ending": _between(page, "ending")}
    parts = {**retained, **sections, **({"ending": ending} if ending else {})}
    marked = [
        f"{_BEGIN.format(paper)}\n{parts[paper].strip()}\n{_END.format(paper)}\n"
        for paper in (*NAMES, "ending")
        if parts.get(paper)
    ]
    return "\n".join([_HEAD, *marked])


def _between(page: str, paper: str) -> str:
    _, result, rest = page.partition(_BEGIN.format(paper))
    return rest.partition(_END.format(paper))[0] if result else ""


def _table(item: JudgedItem) -> Iterable[str]:
    """Return one table or figure; with a tolerance above it when any of its cells is compared."""
    title = f"{item.item.label}: {item.item.title}" if item.item.title else item.item.label
    yield from (f"## {title}", "")
    if item.item.nothing:
        yield from (f"{item.item.nothing[0].upper()}{item.item.nothing[1:]}.", "")
    if not item.cells:
        return
    tolerances = [f"- Tolerance {line}" for line in _tolerances(item)]
    yield from [*tolerances, ""] if tolerances else []
    yield from ("| row | column | published | ours | unit | verdict |", "|---|---|---|---|---|---|")
    for cell in item.cells:
        verdict = f"**{cell.verdict}**" if cell.verdict in {Verdict.DIFFERS, Verdict.MISSING} else str(cell.verdict)
        reason = f": {_plain(cell.reason)}" if cell.reason else ""
        named = f"| {_plain(cell.row)} | {_plain(cell.column)} | {_show_figure(cell.published)} | {_ours(cell)} "
        yield f"{named}| {_plain(cell.unit)} | {verdict}{reason} |"
    yield ""


def _tolerances(item: JudgedItem) -> Iterable[str]:
    """Return the tolerances of a table with their reasons; those of some cells only say of which."""
    if item.item.tolerance is not None:
        yield f"{item.item.tolerance}: {item.item.tolerance.reason}"
    for block in item.item.cells:
        if block.tolerance is not None:
            names = block.columns if len(block.columns) < len(block.rows) else block.rows
            yield f"of {', '.join(names)} {block.tolerance}: {block.tolerance.reason}"


def _in_short(cells: Sequence[Judged]) -> str:
    """Return cells as ``row: column ours (published)``, a row once."""
    rows = groupby(cells, key=lambda one: one.row)
    return "; ".join(
        f"{_plain(row)}: "
        + ", ".join(f"{_plain(one.column)} {number(one.ours)} ({_show_figure(one.published)})" for one in of_row)
        for row, of_row in rows
    )


def _count_verdicts(verdicts: Mapping[Verdict, int]) -> str:
    return ", ".join(f"{verdicts[verdict]} {words}" for verdict, words in _IN_WORDS.items() if verdicts.get(verdict))


def _ours(cell: Judged) -> str:
    spread = f" ± {number(cell.spread)}" if cell.spread else ""
    return f"{number(cell.ours)}{spread}"


def _show_figure(published: float | str | None) -> str:
    return published if isinstance(published, str) else number(published)


def _plain(text: str) -> str:
    """Return a text that cannot end a column of a table."""
    return text.replace("|", "\\|")
