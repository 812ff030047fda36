"""Sizes of a job whose capacity is hardly known."""

from __future__ import annotations

import math

import numpy as np

from models.policies.tidewise.job_sizes import CAUTION, relate_doubt


def test_the_doubt_of_a_capacity_of_next_to_nothing_has_an_exponential() -> None:
    doubt = relate_doubt(np.array([100.0, 100.0, 0.0]), np.array([0.0, 1000.0, 0.0]))
    assert math.isfinite(1e-9 * math.exp(CAUTION * doubt[0]))
    assert doubt[1:].tolist() == [0.1, 0.0]
