"""What a policy remembers counts only where it is its own and can be read."""

from __future__ import annotations

import pytest

from models.hosting.memories import recall, store
from models.policies.registry import policy

NAME = "ds2"


def test_its_own_memory_comes_back() -> None:
    chosen = policy(NAME)
    text = store(NAME, chosen.first_memory())
    assert text
    assert recall(chosen, NAME, text, NAME) == (chosen.first_memory(), "")


@pytest.mark.parametrize(("text", "of_policy"), [(None, NAME), ("", NAME), ("{", "conttune"), (None, None)])
def test_without_one_of_its_own_it_begins_afresh_without_a_word(text: str | None, of_policy: str | None) -> None:
    chosen = policy(NAME)
    assert recall(chosen, NAME, text, of_policy) == (chosen.first_memory(), "")


def test_one_that_cannot_be_read_is_named() -> None:
    chosen = policy(NAME)
    memory, why = recall(chosen, NAME, "{", NAME)
    assert memory == chosen.first_memory()
    assert why.startswith("policy ds2 starts afresh: its memory cannot be read: ")
