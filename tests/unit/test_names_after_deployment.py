"""What is kept of a job whose operators are not known, known for the first time, or named as before."""

from __future__ import annotations

import pytest

from controller.view.job_view import EvaluationState
from controller.view.present_names import follow_kept, follow_plan, match_kept
from include.domain.operator_matching import PlacedOperator
from models.policies.evaluation.pending_steps import PendingStep
from tests.unit.test_evaluation import FALL, plan, stand, step
from tests.unit.test_present_names import AFTER, BEFORE

SWAPPED = (PlacedOperator("map", "1" * 32, 0), PlacedOperator("source", "2" * 32, 1, ("map",)))


def kept(*operators: PlacedOperator) -> EvaluationState:
    return EvaluationState(standing=stand().standing, operators=operators)


def test_while_the_operators_are_not_known_what_was_kept_stays_under_the_names_it_has() -> None:
    """A controller that has just started has no poll yet; later the names are matched with those of before."""
    assert follow_kept(kept(*BEFORE), ()) == kept(*BEFORE)
    standing = follow_kept(follow_kept(kept(*BEFORE), ()), AFTER).standing
    assert standing is not None
    assert standing.wanted == {"map": 1, "map[2]": 2}


def test_operators_that_are_known_for_the_first_time_are_kept_with_what_is_there() -> None:
    assert follow_kept(kept(), AFTER) == kept(*AFTER)
    assert follow_kept(kept(*BEFORE), BEFORE) == kept(*BEFORE)


def test_operators_of_the_same_names_are_kept_by_their_present_places() -> None:
    moved = (BEFORE[0], PlacedOperator("map", "2" * 32, 2, ("source",)))
    assert follow_kept(kept(*BEFORE), moved) == kept(*moved)


@pytest.mark.parametrize(("before", "present"), [((), AFTER), (BEFORE, ()), ((), ()), (BEFORE, BEFORE)])
def test_no_name_has_changed_where_both_are_the_same_or_one_is_not_known(before, present) -> None:
    assert match_kept(kept(*before), present) is None


def test_names_that_have_changed_are_matched_by_vertex_ids() -> None:
    assert match_kept(kept(*BEFORE), AFTER) == {"source": "map", "map": "map[2]"}
    assert match_kept(kept(*BEFORE), SWAPPED) == {"source": "map", "map": "source"}
    assert match_kept(kept(*BEFORE), AFTER[:1]) == {"source": "map"}


def test_a_plan_that_names_present_operators_alone_stands_as_it_is_whatever_they_were_called_before() -> None:
    """It was written under the newest graph that has all of its names."""
    made = plan(step())
    assert follow_plan(made, [BEFORE, AFTER], SWAPPED) == made


def test_a_step_on_operators_that_no_graph_has_keeps_their_names() -> None:
    strange = plan(step(PendingStep(FALL.apply_at_s, FALL.valid_until_s, {"source": 1, "other": 2}, 0.0, "")))
    assert follow_plan(strange, [BEFORE], AFTER) == strange
    assert follow_plan(strange, [], AFTER) == strange
