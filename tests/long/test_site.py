"""`make site`: strictly built without a warning, and pages from the code are those of the repository."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from tools import commands_doc
from tools.site import SiteError, build_site
from tools.site_source import is_record, write_sources

pytestmark = pytest.mark.long


class Links(HTMLParser):
    """Collects the addresses that a page names, and its own anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.anchors.update(value for value in (named.get("id"), named.get("name")) if value)
        self.targets.update(value for value in (named.get("href"), named.get("src")) if value)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("site") / "html"
    assert build_site(target) > 60
    return target


def test_every_link_of_the_built_pages_leads_somewhere_here(site: Path) -> None:
    pages = {}
    for path in site.rglob("*.html"):
        pages[path.resolve()] = links = Links()
        links.feed(path.read_text(encoding="utf-8"))
    broken = []
    for page, links in pages.items():
        for target in links.targets:
            path, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            wanted = (page.parent / unquote(path.partition("?")[0])).resolve() if path else page
            known = pages.get(wanted)
            if not wanted.exists() or (anchor and known and unquote(anchor) not in known.anchors | {""}):
                broken.append(f"{page.relative_to(site)}: {target}")
    assert broken == []


def test_a_search_leads_to_guides(site: Path) -> None:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    names = [f"{name}.md" for name in index["docnames"]]
    listed = [places if isinstance(places, list) else [places] for places in index["terms"].values()]
    searched = {names[place] for places in listed for place in places}
    assert searched == {name for name in names if not is_record(name)}


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="https?://', text) == [], path


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_broken(target: Path) -> int:
        pages = write_sources(target)
        (target / "gate.md").write_text("# The gate\n\n[nowhere](reasons.md#no-such-heading)\n")
        return pages

    monkeypatch.setattr("tools.site.write_sources", write_broken)
    with pytest.raises(SiteError, match=r"gate.md:3: WARNING.*no-such-heading"):
        build_site(tmp_path / "html")
    assert not (tmp_path / "html").exists()


def test_the_page_of_commands_is_up_to_date() -> None:
    page = commands_doc.PAGE.read_text()
    assert page == commands_doc.update_page(page), "run make docs"
