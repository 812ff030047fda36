"""What a replay's training is told of a row."""

from __future__ import annotations

import math

import numpy as np

from lab.replay.failures import Downtime
from lab.replay.row_histories import list_events


def test_the_age_of_a_checkpoint_is_that_of_a_failure_and_unknown_of_a_rescale() -> None:
    downtimes = [Downtime("rescale", 10.0, 30.0, math.nan), Downtime("restart", 100.0, 60.0, 45.0)]
    events = list_events([*downtimes, Downtime("restart", 190.0, 60.0, 5.0)], 0.0, 200.0)
    np.testing.assert_array_equal(events.checkpoint_age_s, [np.nan, 45.0])
    assert events.downtime_s.tolist() == [30.0, 60.0]  # the third was not over
    assert events.cause_kind.tolist() == ["rescale", "job_failure"]
