"""Jobs of one name on a cluster have names of their own."""

from __future__ import annotations

import pytest

from models.polling.job_names import name_jobs


@pytest.mark.covers("apply_review 14")
def test_only_namesakes_get_a_piece_of_their_id() -> None:
    one, two, three = "a" * 32, "b" * 32, "c" * 32
    assert name_jobs([(one, "orders"), (two, "rides"), (three, "orders")]) == {
        one: "orders (aaaaaaaa)",
        two: "rides",
        three: "orders (cccccccc)",
    }
    assert name_jobs([(one, "orders")]) == {one: "orders"}
    near = "a" * 31 + "0"
    assert name_jobs([(one, "x"), (near, "x")]) == {one: f"x ({one})", near: f"x ({near})"}
