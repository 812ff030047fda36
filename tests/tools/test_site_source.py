"""The site has every page once, links that hold there, and pages that are what the code says."""

from __future__ import annotations

import re
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import pytest

from cli import hold
from cli.console import VERBS
from include.tables import BY_PERSONS, CONTROLLED, TABLES
from tools import metrics_doc, tables_doc
from tools.commands_doc import PAGE, find_parser, list_options
from tools.gone_targets import list_targets
from tools.long_parts import read_parts
from tools.site_source import NO_SEARCH, RECORDS, list_sources, rewrite_links, write_sources

PLACES = list_sources()


def test_every_page_is_in_one_table_of_contents(tmp_path: Path) -> None:
    write_sources(tmp_path)
    listed = Counter[str]()
    for page in tmp_path.rglob("*.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
            names = [line for line in block.splitlines() if line and not line.startswith(":")]
            found = [name for name in names if "*" not in name]
            globs = [one for name in names if "*" in name for one in page.parent.glob(f"{name}.md") if one != page]
            listed.update(str((page.parent / name).relative_to(tmp_path)) for name in found)
            listed.update(str(one.relative_to(tmp_path).with_suffix("")) for one in globs)
    pages = {place.removesuffix(".md") for place in PLACES.values() if place.endswith(".md")}
    assert listed.keys() == pages - {"index"}
    assert set(listed.values()) == {1}


def test_the_search_finds_guides_and_no_records(tmp_path: Path) -> None:
    write_sources(tmp_path)
    pages = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*.md")}
    left_out = {place for place, text in pages.items() if text.startswith(NO_SEARCH)}
    assert {"adr/index.md", "papers/index.md", "replay/tables.md", "performance.md", "changelog.md"} <= left_out
    assert {"faq.md", "on_call.md", "settings.md", "limits.md", "reliability.md", "versions.md"}.isdisjoint(left_out)
    assert not [pattern for pattern in RECORDS if not any(fnmatch(place, pattern) for place in left_out)]


@pytest.mark.parametrize(
    ("source", "link", "expected"),
    [
        ("docs/replay.md", "[p](../benchmarks/papers/results/papers.md#x)", "[p](papers/index.md#x)"),
        ("benchmarks/papers/results/papers.md", "[c](../../../docs/policies.md)", "[c](../policies.md)"),
        ("CHANGELOG.md", "[m](docs/models_review.md)", "[m](models_review.md)"),
        ("docs/chaos.md", "[log](../CHANGELOG.md)", "[log](changelog.md)"),
        (
            "docs/limits.md",
            "[r](../models/control/step_review.py)",
            "r (`models/control/step_review.py` in the repository)",
        ),
        ("docs/limits.md", "[`include`](../include)", "`include`"),
        ("docs/limits.md", "[out](https://x.org/a) and [here](#a)", "[out](https://x.org/a) and [here](#a)"),
        ("docs/limits.md", "```\n[a](../x.md)\n```", "```\n[a](../x.md)\n```"),
        ("README.md", "![p](docs/images/report_job.png)", "![p](images/report_job.png)"),
    ],
)
def test_links_hold_in_the_site(source: str, link: str, expected: str) -> None:
    assert rewrite_links(link, source, {"README.md": "readme.md"} | PLACES) == expected


@pytest.mark.parametrize("tool", [tables_doc, metrics_doc], ids=lambda tool: tool.__name__)
def test_a_page_from_the_code_is_up_to_date(tool) -> None:
    assert tool.PAGE.read_text() == tool.update_page(tool.PAGE.read_text()), "run make docs"


def test_every_table_says_what_it_is_and_is_listed() -> None:
    meanings, _ = tables_doc.read_meanings()
    assert {one.name for one in (*TABLES, *CONTROLLED, *BY_PERSONS)} == meanings.keys()
    assert [name for name, meaning in meanings.items() if not meaning] == []


def test_commands_are_the_verbs_the_targets_and_the_long_parts() -> None:
    named = re.findall(r"^- `((?:tidewise |make |PART=)[a-zA-Z=_ -]+)`:", PAGE.read_text(), re.MULTILINE)
    targets = [
        *(f"make {name}" for name in list_targets()),
        *(name.removeprefix("test-long ") for name in read_parts()),
    ]
    assert sorted(named) == sorted([*(f"tidewise {name}" for name in VERBS), *targets]), "run make docs"


def test_arguments_are_those_of_the_parser() -> None:
    parser = find_parser(hold, ("hold",))
    assert parser is not None
    shown, page = list_options(parser, ("hold",)), PAGE.read_text()
    assert {("`--hours HOURS`", "it ends by itself"), ("`--all`", "hold everything: all jobs of all clusters")} <= {
        *shown
    }
    missing = [row for row in shown if f"- {': '.join(row)}\n" not in page and f"| {' | '.join(row)} |" not in page]
    assert missing == [], "run make docs"
