"""The report in a real browser: a name that is markup does nothing, and the page asks the network for nothing."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser import find_browser, load_page
from saved_page import save, step_row, write_jobs
from strange_names import STRANGE_NAMES

from page.curves import Curve
from page.saving import content_security_policy

pytestmark = pytest.mark.e2e
ATTACKS = (
    "<script>document.body.dataset.ran='script'</script>",
    "<img src=x onerror=\"document.body.dataset.ran='error'\">",
    '" onmouseover="document.body.dataset.ran=\'over\'" x="',
    "</title></style></svg><svg onload=\"document.body.dataset.ran='load'\">",
    "<link rel=stylesheet href=http://tidewise.invalid/style.css>",
    "<img src=http://tidewise.invalid/picture.png>",
)
INJECTED = f"<p>{''.join(ATTACKS)}</p>"
# What Chromium itself asks for; everything else is the page's.
BROWSER_HOSTS = ("googleapis.com", "gvt1.com", "google.com")


@pytest.fixture(scope="module")
def browser() -> str:
    """The path of a browser: on a machine without one the page would go untried, so its tests fail."""
    result = find_browser()
    if result is None:
        pytest.fail("no Chromium on PATH, so the report is not tried in a browser: apt-get install chromium")
    return result


class Handlers(HTMLParser):
    """Collects attributes that run scripts, and whether something ran."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers: list[str] = []
        self.scripts = 0
        self.ran: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.scripts += tag == "script"
        self.ran = dict(attrs).get("data-ran", self.ran)


def inspect_page(browser: str, html: str, work: Path) -> tuple[Handlers, set[str]]:
    page = work / "report.html"
    page.write_text(html)
    document, log = load_page(browser, page, work)
    result = Handlers()
    result.feed(document)
    hosts = {urlsplit(url).hostname or "" for url in re.findall(r'"url":"(https?://[^"]+)"', log)}
    return result, {host for host in hosts if not host.endswith(BROWSER_HOSTS)}


@pytest.fixture
def page(tmp_path: Path) -> str:
    """The saved page of an ordinary job."""
    write_jobs(tmp_path, [step_row("checkout")])
    return save(tmp_path)


@pytest.mark.covers("apply_review 10")
def test_names_that_are_markup_do_nothing(browser: str, tmp_path: Path) -> None:
    names = (*ATTACKS, *STRANGE_NAMES[:5])
    write_jobs(tmp_path, [step_row(name, cluster="live", parallelism_to={name: 3}, reason=name) for name in names])
    html = save(tmp_path, [Curve(ATTACKS[3], [1, 2], [1e3, 2e3], [10.0] * 2, [1], [1e3])])
    result, hosts = inspect_page(browser, html, tmp_path)
    assert (result.handlers, result.scripts, result.ran) == ([], 0, None)
    assert hosts == set()


@pytest.mark.covers("apply_review 10")
def test_the_policy_of_the_page_stops_what_escaping_would_miss(browser: str, tmp_path: Path, page: str) -> None:
    html = page.replace('<h2 id="jobs">', f'{INJECTED}<h2 id="jobs">')
    result, hosts = inspect_page(browser, html, tmp_path)
    assert result.scripts == 1
    assert result.ran is None
    assert hosts == set()


def test_without_the_policy_the_same_page_runs_scripts_and_asks_the_network(
    browser: str, tmp_path: Path, page: str
) -> None:
    html = page.replace('<h2 id="jobs">', f'{INJECTED}<h2 id="jobs">')
    escaped = content_security_policy().replace("'", "&#39;")
    assert escaped in html
    result, hosts = inspect_page(browser, html.replace(escaped, ""), tmp_path)
    assert result.ran is not None
    assert json.dumps(sorted(hosts)) == '["tidewise.invalid"]'
