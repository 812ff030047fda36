"""Policies by name, as ``planner.policy`` and ``planner.policies`` give it."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from models.policies.protocol import Policy


@dataclass(frozen=True, slots=True)
class Entry:
    """A policy that can be chosen.

    Attributes:
        path: ``module:name`` of what makes it when called; imported on use, since some need large libraries.
        title: for people.
        observes: whether it looks at the latest windows, which the plan stage then reads.
    """

    path: str
    title: str
    observes: bool = True


_ROOT = "models.policies"
POLICIES: dict[str, Entry] = {
    "planner": Entry(f"{_ROOT}.tidewise.tidewise_policy:Planner", "Tidewise: schedule by optimisation"),
    "need_vector": Entry(f"{_ROOT}.need_vector:NeedVector", "schedule that covers a forecast quantile", observes=False),
    "ds2": Entry(f"{_ROOT}.ds2.ds2_policy:Ds2", "DS2"),
    "ds2_timely": Entry(f"{_ROOT}.ds2.ds2_policy:make_timely", "DS2, one number of workers per job"),
    "conttune_a3": Entry(f"{_ROOT}.conttune.conttune_policy:ContTune", "ContTune, alpha 3"),
    "conttune_a0": Entry(f"{_ROOT}.conttune.conttune_policy:ContTuneAlpha0", "ContTune, alpha 0"),
    "big_ds2": Entry(f"{_ROOT}.conttune.conttune_policy:BigDs2", "Big phase, then DS2"),
    "random_search": Entry(f"{_ROOT}.baselines.random_search:RandomSearch", "random search"),
    "dragster_saddle": Entry(f"{_ROOT}.dragster.dragster_policy:DragsterSaddlePoint", "Dragster, online saddle point"),
    "dragster_gradient": Entry(
        f"{_ROOT}.dragster.dragster_policy:DragsterGradient", "Dragster, online gradient descent"
    ),
    "dhalion": Entry(f"{_ROOT}.dhalion.dhalion_policy:Dhalion", "Dhalion"),
    "mdp": Entry(f"{_ROOT}.mdp_rl.mdp_rl_policy:CentralisedMdp", "centralised MDP"),
    "rl_plus": Entry(f"{_ROOT}.mdp_rl.mdp_rl_policy:CentralisedRlPlus", "centralised RL, response model known"),
    "rl": Entry(f"{_ROOT}.mdp_rl.mdp_rl_policy:CentralisedRl", "centralised RL"),
    "rl_decentralised": Entry(f"{_ROOT}.mdp_rl.mdp_rl_policy:DecentralisedRl", "decentralised RL"),
    "phoebe": Entry(f"{_ROOT}.phoebe.phoebe_policy:Phoebe", "Phoebe"),
    "twres": Entry(f"{_ROOT}.phoebe.twres:Twres", "TWRES"),
    "flink_autoscaler": Entry(
        f"{_ROOT}.flink_autoscaler.autoscaler_policy:FlinkAutoscaler", "Flink autoscaler, defaults"
    ),
    "flink_autoscaler_tuned": Entry(
        f"{_ROOT}.flink_autoscaler.autoscaler_policy:make_tuned", "Flink autoscaler, tuned"
    ),
    "reactive": Entry(f"{_ROOT}.baselines.reactive:Reactive", "Flink reactive mode with a CPU rule"),
    "static": Entry(f"{_ROOT}.baselines.static:Static", "no rescale at all", observes=False),
}


def check_names(names: Iterable[str]) -> None:
    """Refuse names that no policy has.

    Raises:
        ValueError: with the names that can be chosen.
    """
    unknown = sorted(set(names) - POLICIES.keys())
    if unknown:
        raise ValueError(f"no policy is called {unknown}; choose one of {sorted(POLICIES)}")


def policy(name: str) -> Policy[Any]:
    """Return a policy.

    Raises:
        ValueError: no policy of that name.
    """
    check_names([name])
    module, _, maker = POLICIES[name].path.partition(":")
    made: Policy[Any] = getattr(importlib.import_module(module), maker)()
    return made
