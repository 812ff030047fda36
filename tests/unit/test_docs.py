"""The documents against the code: names of refusals and reasons, paths, commands, links, pages that commands write."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args, get_origin

import pytest
from pydantic import BaseModel

from include.policy_catalogue import BUILT_IN
from include.raw_files import FILE_FAULTS
from include.settings import Settings
from models.control.reasons import REASONS
from spark_jobs.raw_parsing.event_rules import EVENT_REASONS

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
RESULTS = REPOSITORY / "benchmarks" / "papers" / "results"
PAGES = sorted([REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md", *DOCS.rglob("*.md"), *RESULTS.glob("*.md")])
NAME = re.compile(r"[a-z]+(_[a-z]+)+")


def runbook_names(heading: str) -> set[str]:
    """Return the names in the first column of the table of the runbook that has this heading."""
    lines = (DOCS / "runbook.md").read_text().split(f"| {heading} |", 1)[1].splitlines()
    cells = [line.split("|")[1] for line in lines[2:] if line.startswith("|")]
    end = next((place for place, line in enumerate(lines[2:]) if not line.startswith("|")), len(cells))
    return {name for cell in cells[:end] for name in re.findall(r"`([a-z_]+)`", cell)}


def constants(folder: str, wanted: Callable[[ast.AST], list[ast.expr | None]]) -> set[str]:
    """Return the names among the string constants in the expressions that ``wanted`` picks from a folder's code."""
    trees = (ast.parse(path.read_text()) for path in (REPOSITORY / folder).rglob("*.py"))
    picked = (expression for tree in trees for node in ast.walk(tree) for expression in wanted(node))
    found = (leaf for expression in picked if expression is not None for leaf in ast.walk(expression))
    return {
        leaf.value
        for leaf in found
        if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str) and NAME.fullmatch(leaf.value)
    }


def first_argument(*functions: str) -> Callable[[ast.AST], list[ast.expr | None]]:
    """Pick the first argument of calls to functions; a reason may also be passed on as their second."""

    def pick(node: ast.AST) -> list[ast.expr | None]:
        if not isinstance(node, ast.Call):
            return []
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return [*node.args[:1]] if name in functions else []

    return pick


def under_key(*keys: str) -> Callable[[ast.AST], list[ast.expr | None]]:
    """Pick the values of dictionary entries and assignments of these names."""

    def pick(node: ast.AST) -> list[ast.expr | None]:
        if isinstance(node, ast.Dict):
            entries = zip(node.keys, node.values, strict=True)
            return [value for key, value in entries if isinstance(key, ast.Constant) and key.value in keys]
        if isinstance(node, ast.Assign):
            return [node.value for target in node.targets if getattr(target, "id", None) in keys]
        return []

    return pick


def test_runbook_has_every_reason_of_a_decision() -> None:
    def named(node: ast.AST) -> list[ast.expr | None]:
        is_action = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Action"
        return [node.args[1]] if is_action and isinstance(node, ast.Call) and len(node.args) > 1 else []

    in_code = constants("models/control", named) | constants("controller", named)
    assert len(in_code) >= 25
    assert in_code - {""} <= REASONS
    named_there = runbook_names("reason of a decision")
    assert {name for name in REASONS if NAME.fullmatch(name)} <= named_there <= REASONS


def test_runbook_has_every_refusal_of_a_plan() -> None:
    raised = constants("spark_jobs/plan", first_argument("PlanRefusedError"))

    def checked_age(node: ast.AST) -> list[ast.expr | None]:
        is_check = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_check_age"
        return [node.args[1]] if is_check and isinstance(node, ast.Call) else []

    in_code = raised | constants("spark_jobs/plan", checked_age)
    assert len(in_code) >= 8
    assert runbook_names("refusal of a plan") == in_code


@pytest.mark.parametrize("stage", ["learn", "profiling", "backtest"])
def test_runbook_has_every_reason_of_the_other_stages(stage: str) -> None:
    in_code = constants(f"spark_jobs/{stage}", under_key("refusal", "skipped"))
    line = next(line for line in (DOCS / "runbook.md").read_text().splitlines() if line.startswith(f"| `{stage}` |"))
    assert in_code
    assert set(re.findall(r"`([a-z]+_[a-z_]+)`", line)) == in_code


def test_runbook_has_every_reason_of_the_quarantine() -> None:
    named = runbook_names("reason | rule")
    faults = constants("spark_jobs/raw_parsing", first_argument("fault", "ValueRule", "TextError", "_fault"))
    assert {"cluster_mismatch", "unknown_vertex", "bad_encoding", "malformed_json"} <= faults
    # Wherever the rules of single values are written, their names begin with value_; one column does, too.
    everything = constants("spark_jobs/raw_parsing", lambda node: [node] if isinstance(node, ast.Constant) else [])
    values = {name for name in everything if name.startswith("value_")} - {"value_faults"}
    assert named == faults | FILE_FAULTS | values | set(EVENT_REASONS)


def test_settings_have_every_policy() -> None:
    text = (DOCS / "settings.md").read_text().split("## Policies")[1].split("\n### ")[0]
    assert set(re.findall(r"^\| `([a-z0-9_]+)` \|", text, re.MULTILINE)) == set(BUILT_IN)


def test_glossary_has_each_term_once() -> None:
    text = (DOCS / "glossary.md").read_text().split("## Symbols")[0]
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ") and not line.startswith("| term")]
    terms = Counter(term.strip() for row in rows for term in row[1].split(","))
    assert len(terms) > 100
    assert [term for term, count in terms.items() if count > 1] == []
    assert all(row[3].strip() for row in rows), "every term has a source"


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
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or (anchor and anchor not in anchors(found)):
            broken.append(f"{page.relative_to(REPOSITORY)}: {target}")
    assert broken == []


def test_paths_in_the_documents_exist() -> None:
    folders = "include|models|spark_jobs|cli|dags|benchmarks|tools|tests|data"
    missing = []
    for page in PAGES:
        for path in re.findall(rf"`((?:{folders})/[\w./-]*)`", page.read_text()):
            if not (REPOSITORY / path).exists():
                missing.append(f"{page.relative_to(REPOSITORY)}: {path}")
    assert missing == []


def test_commands_in_the_documents_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    missing = []
    for page in PAGES:
        text = page.read_text()
        code = "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))
        missing += [f"make {name}" for name in re.findall(r"\bmake ([a-z]+)", code) if name not in targets]
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
    assert [name for name in sorted(named) if not has_setting(Settings, name.split("."))] == []
