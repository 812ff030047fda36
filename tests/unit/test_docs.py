"""The documents against the code: paths, commands, links, pages that commands write."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_origin

from pydantic import BaseModel

from cli.console import VERBS
from include.policy_catalogue import catalogue
from include.settings import Settings, check_settings
from include.settings.refusals import MOVED
from include.settings.retired import list_constants
from tools.gone_targets import list_targets

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
RESULTS = REPOSITORY / "benchmarks" / "papers" / "results"
PAGES = sorted([REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md", *DOCS.rglob("*.md"), *RESULTS.glob("*.md")])


def test_settings_have_every_policy() -> None:
    text = (DOCS / "settings.md").read_text().split("## Policies")[1].split("\n## ")[0]
    assert set(re.findall(r"^- `([a-z0-9_]+)`:", text, re.MULTILINE)) == set(catalogue())


def test_glossary_has_each_term_once() -> None:
    text = (DOCS / "glossary.md").read_text().split("## Symbols")[0]
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    rows = [re.fullmatch(r"- \*\*(.+)\*\*: .+ \(.+\)", line) for line in lines]
    assert None not in rows, "every term has a meaning and a source"
    terms = Counter(term for row in rows if row is not None for term in row[1].split(", "))
    assert len(terms) > 50
    assert [term for term, count in terms.items() if count > 1] == []


def test_readme_lines_are_of_ordinary_length() -> None:
    assert max(map(len, (REPOSITORY / "README.md").read_text().splitlines())) <= 100


def links() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if "://" not in target:
                yield page, target


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    broken = []
    is_settings_page_made = (REPOSITORY / "include" / "settings").is_dir()  # from that package
    for page, target in links():
        if target.endswith("settings.md") and not is_settings_page_made:
            continue
        path, _, anchor = target.partition("#")
        result = (page.parent / path).resolve() if path else page
        if not result.exists() or (anchor and anchor not in anchors(result)):
            broken.append(f"{page.relative_to(REPOSITORY)}: {target}")
    assert broken == []


def test_paths_in_the_documents_exist() -> None:
    folders = "include|models|spark_jobs|cli|dags|benchmarks|tools|tests|data"
    missing = []
    for page in (one for one in PAGES if not is_superseded(one)):
        for path in re.findall(rf"`((?:{folders})/[\w./-]*)`", page.read_text()):
            if not (REPOSITORY / path).exists():
                missing.append(f"{page.relative_to(REPOSITORY)}: {path}")
    assert missing == []


def test_commands_in_the_documents_exist() -> None:
    targets, missing = {*list_targets(), "python"}, []
    for page in PAGES:
        text = page.read_text()
        code = "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))
        made = re.findall(r"\bmake ([a-z]+(?:-[a-z]+)*)", code)
        missing += [f"make {name}" for name in made if name not in targets and page.name != "CHANGELOG.md"]
        verbs = re.findall(r"(?:^|`|/)tidewise ([a-z]+)", code, re.MULTILINE)
        missing += [f"tidewise {verb}" for verb in verbs if verb not in {*VERBS, "completion"}]
        for module in re.findall(r"python -m ([a-z_.]+[a-z_])", code):
            if importlib.util.find_spec(module) is None:
                missing.append(f"python -m {module}")
    assert missing == []


def has_setting(model: type[BaseModel], parts: list[str]) -> bool:
    """Whether a path of names leads to a key; the keys of a table may be anything."""
    field = model.model_fields.get(parts[0])
    if field is None or len(parts) == 1:
        return field is not None
    inner = field.annotation
    if get_origin(inner) is dict:
        return len(parts) == 2 or has_setting(get_args(inner)[1], parts[2:])
    return isinstance(inner, type) and issubclass(inner, BaseModel) and has_setting(inner, parts[1:])


def test_settings_in_the_documents_exist() -> None:
    sections = "|".join(Settings.model_fields.keys() - {"spark"})  # Spark's own keys begin with it, too
    pages = [*PAGES, *(REPOSITORY / "dags").glob("*.py")]
    pattern = rf"`((?:{sections})(?:\.[a-z_<>]+)+)(?: = [^`]*)?`"
    named = {name for page in pages for name in re.findall(pattern, page.read_text())}
    assert len(named) > 20
    gone = {".".join(one.path) for one in list_constants(Settings)} | {"planner.reactive"}
    assert [name for name in sorted(named - MOVED.keys() - gone) if not has_setting(Settings, name.split("."))] == []


def test_prices_that_are_advised_can_be_set() -> None:
    advice = (DOCS / "policies.md").read_text().split("## Fewer rescales, or less lateness")[1].split("\n## ")[0]
    keys = re.findall(r"^\| `planner\.([a-z_]+)\.([a-z_]+)`", advice, re.M)
    assert len(keys) == 3
    for section, key in keys:
        check_settings({"planner": {section: {key: 1.5}}})


def is_superseded(page: Path) -> bool:
    return bool(re.search(r"^Status: superseded", page.read_text(), re.MULTILINE))


def test_decisions_name_constants_that_the_code_has() -> None:
    folders = ("include", "models", "spark_jobs", "controller", "fleet", "page", "cli", "lab", "benchmarks")
    code = "\n".join(path.read_text() for folder in folders for path in (REPOSITORY / folder).rglob("*.py"))
    pages = [page for page in sorted((DOCS / "adr").glob("*.md")) if not is_superseded(page)]
    named = {name for page in pages for name in re.findall(r"`([A-Z][A-Z]+(?:_[A-Z]+)*)`", page.read_text())}
    assert named
    assert [name for name in sorted(named) if not re.search(rf"\b{name}\b", code)] == []


def test_ten_questions_are_answered_in_words_of_users() -> None:
    page = (REPOSITORY / "docs" / "faq.md").read_text()
    headings = re.findall(r"^## (.+)$", page, re.MULTILINE)
    words = ("Prometheus", "cost to run", "Airflow is down", "off for one job", "Flink versions", "upgrade", "operator")
    words += ("consumer lag", "history", "permissions")
    assert [[one for one in headings if word in one][:1] for word in words] == [[one] for one in headings]
    assert 'mode = "off"' in page
    assert "docs/faq.md" in (REPOSITORY / "README.md").read_text()
    assert "--prometheus" in (REPOSITORY / "README.md").read_text()


def test_index_answers_by_one_link_what_operators_ask_first() -> None:
    rows = re.findall(r"^\| (.+\?) \| (.+) \|$", (DOCS / "index.md").read_text(), re.MULTILINE)
    asked = ["my cluster", "cost", "switch", "stop", "Why", "undo", "plan mean", "old data", "deploy", "upgrade"]
    assert [[word in question for word in asked].index(True) for question, _ in rows] == list(range(len(asked)))
    assert all("](" in answer for _, answer in rows)
