"""Each public definition of the product is reached from an entry point of the product."""

from __future__ import annotations

from textwrap import dedent

from include.settings import PROJECT
from tools.definitions import Definition, Definitions
from tools.entry_points import PRODUCT, list_entry_points, read_sources

FOR_OTHERS = {
    ("models.control.step_review", "let_pass"): "a team's review of steps returns it: docs/limits.md",
    ("models.control.step_review", "lower"): "the same",
    ("models.control.step_review", "veto"): "the same",
    ("models.policies.protocol", "History"): "what a policy of another distribution learns from",
    ("models.policies.protocol", "Learner"): "the protocol of such a policy",
    ("models.policies.protocol", "Learner.learn"): "the same",
}
"""Definitions that are there for other distributions -> why."""
STARTS = ("", "main", "run", "build_app", "TidewisePlugin")
"""What is called of a module that is started: what stands outside functions, and these."""


def find_unused(sources: dict[str, str], texts: list[str], modules: list[str]) -> set[Definition]:
    definitions = Definitions(sources, texts)
    return definitions.public() - definitions.reach((module, name) for module in modules for name in STARTS)


def test_every_public_definition_of_the_product_is_reached_from_what_is_started() -> None:
    files = read_sources(PROJECT, PRODUCT)
    sources = {
        path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): content.decode()
        for path, content in files.items()
    }
    templates = [path.read_text() for folder in PRODUCT for path in (PROJECT / folder).rglob("*.j2")]
    unused = find_unused(sources, templates, list(list_entry_points().values()))
    assert len(sources) > 500
    assert sorted(unused - FOR_OTHERS.keys()) == [], "it goes, or to lab, benchmarks or tools if those use it"
    assert sorted(FOR_OTHERS.keys() - unused) == [], "the product uses it: it needs no reason"


def unused_of(**modules: str) -> list[str]:
    sources = {name: dedent(code) for name, code in modules.items()}
    return sorted(f"{module}.{name}" for module, name in find_unused(sources, [], ["app"]))


def test_what_is_mentioned_by_what_is_started_is_used_and_so_on() -> None:
    app = "from lib import used\ndef main(): return used()"
    lib = """
        LIMIT = 3
        SPARE = 4
        def used(): return helper() + LIMIT
        def helper(): return 1
        def unused(): return unused()
    """
    assert unused_of(app=app, lib=lib) == ["lib.SPARE", "lib.unused"]


def test_an_import_alone_uses_nothing_and_code_of_a_module_runs() -> None:
    app = "from lib import spare\ndef main(): return 1"
    lib = "def spare(): return 1\ndef register(): return 2\nregister()"
    assert unused_of(app=app, lib=lib) == ["lib.spare"]


def test_names_in_texts_and_casts_are_used() -> None:
    app = """
        import importlib
        from typing import cast
        from lib import Shape
        def main(): return importlib.import_module("lib:make"), "lib.other", cast("Shape", 1)
    """
    lib = "class Shape: pass\ndef make(): return 1\ndef other(): return 2\ndef third(): return 3"
    assert unused_of(app=app, lib=lib) == ["lib.third"]


def test_a_method_is_used_where_its_class_is_and_its_name_is_mentioned_or_it_is_called_by_others() -> None:
    app = "from lib import Job\ndef main(): return Job().start()"
    lib = """
        from http.server import Handler
        from pydantic import field_validator
        class Job:
            def start(self): return Server
            def stop(self): return 1
            @field_validator("name")
            def check(self): return 2
        class Server(Handler):
            def do_GET(self): return 3
        class Idle:
            def start(self): return 4
    """
    assert unused_of(app=app, lib=lib) == ["lib.Idle", "lib.Idle.start", "lib.Job.stop"]
