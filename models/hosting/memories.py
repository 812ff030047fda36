"""What a policy remembers of a job, to and from the text that a table holds."""

from __future__ import annotations

from typing import Any

from models.policies.protocol import Policy
from models.policies.registry import memory_codec


def recall(chosen: Policy[Any], name: str, text: str | None, of_policy: str | None) -> tuple[Any, str]:
    """Return what a policy of a name remembers, and why it begins afresh although a text is there, or nothing.

    A memory ``of_policy`` of another name counts as none.
    """
    first = chosen.first_memory()
    if not text or of_policy != name:
        return first, ""
    try:
        return memory_codec(name).load(type(first), text), ""
    except ValueError as error:  # written by another release
        return first, f"policy {name} starts afresh: its memory cannot be read: {error}"


def store(name: str, memory: Any) -> str | None:
    """Return a policy's memory as text; None for a policy without one."""
    return None if memory is None else memory_codec(name).dump(memory)
