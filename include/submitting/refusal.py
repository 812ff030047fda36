"""The error of a stage that cannot be submitted."""

from __future__ import annotations


class SubmitError(ValueError):
    """A stage cannot be submitted as it is set up; the message says what to change, and no secret."""
