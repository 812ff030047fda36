"""In which terms a step is put for a cluster: the least parallelism of the operator's autoscaler, or each vertex's."""

from __future__ import annotations

from typing import Any

import pytest

from controller.actuators.choose_actuator import choose_terms
from include.kubernetes.manifests import MIN_PARALLELISM
from include.settings import Cluster, Settings
from models.control.state import Intention, ObservedJob, Origin

GUIDE = {"mode": "guide"}
OWN_GROUP = ObservedJob("j", "RUNNING", {"a": 2, "b": 2}, {"a": 2, "b": 2}, slot_sharing_group={"b": "own"})
EACH = {"a": 4, "b": 2}


@pytest.mark.parametrize(
    ("cluster", "wanted", "expressed"),
    [
        ({"actuator": "kubernetes", "kubernetes": GUIDE}, EACH, {MIN_PARALLELISM: 2}),
        ({"actuator": "kubernetes", "kubernetes": GUIDE}, {"a": 4, "b": 1}, {MIN_PARALLELISM: 1}),
        ({"actuator": "kubernetes", "kubernetes": GUIDE}, {"a": 3, "b": 3}, {MIN_PARALLELISM: 3}),
        ({"actuator": "kubernetes"}, EACH, EACH),
        ({"actuator": "rest", "kubernetes": GUIDE}, EACH, EACH),  # nothing is written into a resource there
        ({"actuator": "none", "kubernetes": GUIDE}, EACH, EACH),
    ],
)
def test_a_step_is_a_least_parallelism_only_where_the_operator_s_autoscaler_is_guided(
    cluster: dict[str, Any], wanted: dict[str, int], expressed: dict[str, int]
) -> None:
    settings = Settings(clusters={"prod": Cluster(rest_url="http://localhost:1", **cluster)})
    intention = Intention(wanted, Origin.PLAN, "step", "load rises", 0.0)
    assert choose_terms(settings, "prod")(intention, OWN_GROUP).parallelism == expressed
