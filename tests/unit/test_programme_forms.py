"""The programme without what it foresees, and what the replay's policies are told of the times of changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lab.replay.conditions import AT_ONCE, Conditions, Disturbances
from lab.replay.programme_forms import FORMS, follow_nothing
from models.programme.law_state import LawState
from models.programme.load_law import observe
from models.programme.load_outlook import look_ahead
from models.programme.load_paths import DAY


def test_the_policies_of_a_replay_know_what_its_changes_wait_for() -> None:
    slow = Conditions(disturbances=Disturbances(slots_wait_s=180.0))
    assert (slow.options.timing.slots_wait_s, slow.options.timing.awaits_checkpoint) == (180.0, True)
    assert replace(slow, disturbances=AT_ONCE).options == slow.planner
    assert slow.options.with_values(FORMS["programme_not_told"].changed) == slow.planner


def test_without_shapes_a_law_that_knows_its_days_holds_the_level() -> None:
    law = LawState.first()
    for at in range(2 * DAY + 60):
        observe(law, at, 1000.0 + 800.0 * np.sin(2 * np.pi * at / DAY), lambda _: None)
    assert np.ptp(look_ahead(law, lambda _: None).mean) > 0.1
    flat = look_ahead(LawState.read(follow_nothing(law.write())), lambda _: None)
    assert flat.followed.source == ""
    assert np.ptp(flat.mean) == pytest.approx(0.0, abs=1e-9)
