"""The tables of reasons are what the enumerations of reasons say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.arguments import UsageError
from include.domain.named_reason import NamedReason
from tools.reasons_doc import PAGES, format_reasons, update_page

TABLES = {name: table for tables in PAGES.values() for name, table in tables.items()}


class Colour(NamedReason):
    RED = "red", "it glows", "wait"
    DARK_BLUE = "dark_blue", "it is cold"


class State(NamedReason):
    OPEN = "open", "it is open", "close it"
    SHUT = "shut", "it is shut", "nothing"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_up_to_date(page: Path) -> None:
    assert page.read_text() == update_page(page.read_text(), PAGES[page]), "run make docs"


@pytest.mark.parametrize("name", TABLES)
def test_every_reason_has_its_texts_on_one_line(name: str) -> None:
    reasons, heads = TABLES[name]
    for one in reasons:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", one)
        assert one.name == one.upper()
        texts = (one.meaning, one.remedy)[: len(heads) - 1]
        assert all(text and "|" not in text and "\n" not in text for text in texts), one


def test_a_reason_is_its_name_and_is_found_by_it() -> None:
    assert Colour("dark_blue") is Colour.DARK_BLUE
    assert (f"{Colour.RED}", str(Colour.RED), Colour.RED == "red") == ("red", "red", True)


def test_there_is_a_row_for_each_reason_and_a_table_where_there_are_remedies() -> None:
    assert format_reasons(Colour, ("name", "why")).splitlines() == ["- `red`: it glows", "- `dark_blue`: it is cold"]
    assert format_reasons(Colour, ("name", "why", "do")).splitlines()[2:] == [
        "| `red` | it glows | wait |",
        "| `dark_blue` | it is cold |  |",
    ]


def test_reasons_that_ask_for_nothing_are_a_list_without_a_remedy() -> None:
    assert format_reasons(State, ("name", "why", "do")).splitlines() == [
        "| name | why | do |",
        "|---|---|---|",
        "| `open` | it is open | close it |",
        "",
        "These ask nothing of you:",
        "",
        "- `shut`: it is shut",
    ]


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(UsageError, match="jobs that backtest leaves out"):
        update_page("# Policies", next(iter(PAGES.values())))
