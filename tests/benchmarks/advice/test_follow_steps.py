"""The simulated fleet under the steps of an appraisal."""

from __future__ import annotations

import numpy as np

from benchmarks.advice.follow_steps import FollowSteps


def test_steps_are_followed_from_their_time_on():
    class Snapshot:
        time_s = 0.0

    follow = FollowSteps(
        lambda _: np.array([[9, 9], [8, 8]]), 990.0, {1: (np.array([1300, 1600]), np.array([[1, 2], [3, 4]]))}
    )
    result = []
    for time_s in (0.0, 299.0, 300.0, 600.0, 900.0):
        Snapshot.time_s = time_s
        result.append(follow(Snapshot()).tolist())
    assert [rows[0] for rows in result] == [[9, 9]] * 5
    assert [rows[1] for rows in result] == [[8, 8], [8, 8], [1, 2], [3, 4], [3, 4]]
