"""Which readings of the source count."""

from __future__ import annotations

import pytest

from benchmarks.live.instruments import is_whole


@pytest.mark.parametrize(
    ("due", "expected"),
    [
        (100_000.0, True),
        (99_500.0, True),  # its two parts were read one after the other
        (60_000.0, False),  # a reader has not its shares back
        (130_000.0, False),  # a lost subtask is shown beside the one that has its shares
    ],
)
def test_the_shares_of_all_readers_are_shown_once(due: float, expected: bool):
    assert is_whole(due, before=100_000.0, most=101_000.0) is expected
