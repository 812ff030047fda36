"""Which names are one job: a cluster's pattern of names with a part named ``job``, for versions in names."""

from __future__ import annotations

import re

_PART = "(?P<job>"
_NOT_ALIKE = re.compile(r"\(\?(?!:|P<job>)|\\(?![dswDSW]|[^A-Za-z0-9])|\[[^\]]*\[|&&|[*+?}]\+")
"""What Python and Java, which Spark uses, do not read alike."""


def check_job_names(pattern: str) -> str:
    """Refuse a pattern that cannot name jobs.

    Raises:
        ValueError: it is no regular expression, has no part ``job``, or is read in two ways.
    """
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"is no regular expression ({error})") from error
    if pattern.count(_PART) != 1:
        raise ValueError("needs one part (?P<job>...), which is the name of the job")
    if match := _NOT_ALIKE.search(pattern):
        raise ValueError(f"has {match[0]!r}, which Spark reads otherwise; use (?:...), sets, *, +, ?, \\d, \\w and \\s")
    return pattern


def name_job(pattern: str | None, name: str) -> str:
    """Return the job that a name of Flink's means: its part ``job`` where all of it fits the pattern, else itself."""
    match = None if pattern is None else re.fullmatch(pattern, name, re.ASCII)
    return name if match is None else match["job"] or name


def write_for_java(pattern: str) -> tuple[str, int]:
    """Return the pattern of a whole name as Java writes it, and the number of its part ``job``."""
    return rf"\A(?:{pattern.replace(_PART, '(?<job>')})\z", re.compile(pattern).groupindex["job"]
