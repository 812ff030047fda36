"""A stage has one way for any size: no count and no number of bytes chooses between functions."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import spark_jobs
from tools.size_choices import find_choices, list_choices


def test_no_size_chooses_a_path_in_the_stages() -> None:
    root = Path(spark_jobs.__file__).parent
    assert len(list(root.rglob("*.py"))) > 100
    assert list(list_choices(root)) == []


def test_what_chooses_by_a_size_is_named_and_what_deals_parts_is_not() -> None:
    source = """
        FEW_BYTES = 4
        def read(size, rows, is_small):
            if size <= FEW_BYTES:
                return one(size)
            made = one(rows) if len(rows) < 2000 else other(rows)
            are_many = size > FEW_BYTES
            while size > FEW_BYTES:
                size -= 1
            for part in rows:
                if len(rows) > FEW_BYTES:
                    hold(part)
            chosen = [row for row in rows if row > FEW_BYTES]
            return rows[rows < 2000]
    """
    assert find_choices(dedent(source)) == [3, 4, 6, 7]
