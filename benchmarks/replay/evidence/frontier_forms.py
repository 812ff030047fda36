"""The points of the frontier: each policy over what trades slots for late minutes in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from benchmarks.replay.best_forms import read_forms
from benchmarks.replay.cost_rows import BETWEEN
from benchmarks.replay.rivals.rival_options import CandidateForm
from include.settings import Costs

LATE_FACTORS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 10.0)
HEADROOMS: Final = (0.0, 0.1, 0.2, 0.35, 0.5)
_TARGETS: Final = (0.6, 0.7, 0.8, 0.9)
_REACTIVE: Final = ((0.6, 0.7), (0.7, 0.8), (0.85, 0.95), (0.95, 1.0))
_WITH_HEADROOM: Final = ("conttune_a3_best", "ds2_best", "big_ds2_best", "phoebe_best")


def list_frontier() -> dict[str, CandidateForm]:
    """Return "<policy>@<point>" -> its form."""
    weight, forms = Costs().late_weight, read_forms()
    own = {f"late x{factor:g}": {"costs.late_weight": factor * weight} for factor in LATE_FACTORS}
    result = _name("programme", [(point, CandidateForm("programme", values)) for point, values in own.items()])
    reactive = [
        (
            f"{used:.0%} used",
            CandidateForm(
                "controller_alone",
                {"reactive.unplanned_utilisation_target": used, "reactive.unplanned_utilisation_max": most},
            ),
        )
        for used, most in _REACTIVE
    ]
    result |= _name("controller_alone", reactive)
    for base, key in (
        ("flink_autoscaler_tuned", "utilization_target"),
        ("predictive_scaling", "target_utilisation"),
    ):
        known = forms.get(f"{base}_best", CandidateForm(base)).parameters
        points = [(f"{used:.0%} used", CandidateForm(base, {**known, key: used})) for used in _TARGETS]
        result |= _name(base, points)
    for name in _WITH_HEADROOM:
        if name in forms:
            points = [(f"+{share:.0%}", replace(forms[name], headroom=share)) for share in HEADROOMS]
            result |= _name(name, points)
    return result


def split_point(name: str) -> tuple[str, str]:
    """Return policy and point of a name; a name without a point has an empty one."""
    policy, _, point = name.partition(BETWEEN)
    return policy, point


def _name(policy: str, points: Sequence[tuple[str, CandidateForm]]) -> dict[str, CandidateForm]:
    return {f"{policy}{BETWEEN}{point}": form for point, form in points}
