"""Names that are stored in tables and logs, each with what it means and what a person does about it."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class NamedReason(StrEnum):
    """A name in snake_case as it is stored, with its line in the documentation; both texts are Markdown.

    Attributes:
        meaning: one line for a person.
        remedy: what to do about it; empty where its table has no such column.
    """

    meaning: str
    remedy: str

    def __new__(cls, name: str, meaning: str = "", remedy: str = "") -> Self:
        """Return a member; its value is the name alone."""
        member = str.__new__(cls, name)
        member._value_, member.meaning, member.remedy = name, meaning, remedy
        return member
