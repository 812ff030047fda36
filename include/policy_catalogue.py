"""Policies by name, each with everything that is to be known of it before it is imported.

A policy is one package and one entry here.  A policy of another project is an entry point of the group
``tidewise.policies``: its name is the policy's, its value ``module:ENTRY`` names a :class:`PolicyEntry` in a module
that imports nothing heavy, since DAG files read it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any

GROUP = "tidewise.policies"


class Decides(StrEnum):
    """When a policy decides.

    AHEAD: with every plan, for the time until the next one.
    REACTS: at every evaluation, from what is measured.
    REPLANS: with every plan, and anew at every evaluation, from what is measured and what the plan expects.
    WITH_PLANS: from what is measured, too, but with the plans: it solves a decision problem each time, which may take
        it a second, and makes up at once for the actions that it could not take since the last one.
    """

    AHEAD = "plans ahead"
    REACTS = "reacts"
    REPLANS = "plans ahead, decides anew at every evaluation"
    WITH_PLANS = "reacts, with the plans"


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """What is known of a policy.  Paths are ``module:attribute`` and imported when first needed.

    Attributes:
        factory: path of what makes the policy: called without arguments, or with ``options=`` if it has parameters.
        title: for people.
        decides: when it decides.
        observes: whether it is shown the latest windows, which the plan stage then reads.
        reads_models: whether a policy that reacts looks at what the nightly training has learnt.
        learns_nightly: whether it has a method ``learn`` that is called with the history every night.
        needs_profile: whether its memory has a field ``profile``, filled by a profiling phase.
        slot_problem: path of the function from a situation and a memory to a
            :class:`models.scheduling.slot_problem.SlotProblem`, from which the slot prices of a cluster are found, or
            to None where the job keeps what it has; None for a policy that is planned without regard to a budget.
        past_learner: path of the function from the :class:`models.policies.protocol.PastLoads` of jobs that are new to
            the policy to the memories with which they begin; None for a policy that learns from them one by one.
        parameters: path of the dataclass of its parameters, ``[policies.<name>]`` in the settings; None without any.
        preset: parameters that are other than the class's defaults.
        memory_codec: module with ``dump`` (memory to text) and ``load`` (class and text to memory).
    """

    factory: str
    title: str
    decides: Decides = Decides.REACTS
    observes: bool = True
    reads_models: bool = False
    learns_nightly: bool = False
    needs_profile: bool = False
    slot_problem: str | None = None
    past_learner: str | None = None
    parameters: str | None = None
    preset: Mapping[str, object] = field(default_factory=dict)
    memory_codec: str = "models.policies.memory"


class PolicyCatalogueError(ValueError):
    """A policy that is not known, twice known, or whose entry is none."""


_P = "models.policies"
_CONTTUNE = f"{_P}.conttune.conttune_options:Options"
_DRAGSTER = f"{_P}.dragster.dragster_options:Options"
_DS2 = f"{_P}.ds2.ds2_options:ManagerOptions"
# The window after a restart still holds the catching up; the ratio is that of the paper's experiments.
_DS2_PRESET = {"warm_up_intervals": 1, "target_rate_ratio": 1.0}
_AUTOSCALER = f"{_P}.flink_autoscaler.config:AutoscalerConfig"


def _learning_agent(kind: str, title: str, options: str) -> PolicyEntry:
    return PolicyEntry(
        f"{_P}.mdp_rl.mdp_rl_policy:{kind}",
        title,
        Decides.WITH_PLANS,
        reads_models=True,
        learns_nightly=True,
        parameters=f"{_P}.mdp_rl.mdp_rl_options:{options}",
    )


BUILT_IN: Mapping[str, PolicyEntry] = {
    "planner": PolicyEntry(
        f"{_P}.tidewise.tidewise_policy:Planner",
        "Tidewise: schedule by optimisation",
        Decides.AHEAD,
        slot_problem=f"{_P}.tidewise.tidewise_policy:price_slots",
    ),
    "planner_v2": PolicyEntry(
        f"{_P}.tidewise.tidewise_policy:Planner",
        "Tidewise: schedule by optimisation, under a name that stays",
        Decides.AHEAD,
        slot_problem=f"{_P}.tidewise.tidewise_policy:price_slots",
    ),
    "controller_alone": PolicyEntry(
        f"{_P}.tidewise.controller_alone:ControllerAlone",
        "Tidewise: the reactive controller without plans",
        Decides.AHEAD,
    ),
    "programme": PolicyEntry(
        f"{_P}.tidewise.programme_policy:Programme",
        "Tidewise: a Markov decision process at every evaluation",
        Decides.REPLANS,
        slot_problem=f"{_P}.tidewise.programme_policy:price_slots",
        past_learner=f"{_P}.tidewise.past_law:learn_past_loads",
    ),
    "need_vector": PolicyEntry(
        f"{_P}.need_vector.need_vector_policy:NeedVector",
        "schedule that covers a forecast quantile",
        Decides.AHEAD,
        observes=False,
        parameters=f"{_P}.need_vector.need_vector_options:NeedVectorOptions",
    ),
    "ds2": PolicyEntry(f"{_P}.ds2.ds2_policy:Ds2", "DS2", parameters=_DS2, preset=_DS2_PRESET),
    "ds2_timely": PolicyEntry(
        f"{_P}.ds2.ds2_policy:Ds2",
        "DS2, one number of workers per job",
        parameters=_DS2,
        preset={**_DS2_PRESET, "shared_workers": True},
    ),
    "conttune_a3": PolicyEntry(f"{_P}.conttune.conttune_policy:ContTune", "ContTune, alpha 3", parameters=_CONTTUNE),
    "conttune_a0": PolicyEntry(
        f"{_P}.conttune.conttune_policy:ContTuneAlpha0", "ContTune, alpha 0", parameters=_CONTTUNE, preset={"alpha": 0}
    ),
    "big_ds2": PolicyEntry(
        f"{_P}.conttune.conttune_policy:BigDs2",
        "Big phase, then DS2",
        parameters=_CONTTUNE,
        preset={"acquisition": "linear", "always_big": True},
    ),
    "random_search": PolicyEntry(
        f"{_P}.baselines.random_search:RandomSearch",
        "random search",
        parameters=f"{_P}.baselines.baseline_options:RandomSearchOptions",
    ),
    "dragster_saddle": PolicyEntry(
        f"{_P}.dragster.dragster_policy:Dragster",
        "Dragster, online saddle point",
        reads_models=True,
        parameters=_DRAGSTER,
        preset={"target": "saddle"},
    ),
    "dragster_gradient": PolicyEntry(
        f"{_P}.dragster.dragster_policy:Dragster",
        "Dragster, online gradient descent",
        reads_models=True,
        parameters=_DRAGSTER,
        preset={"target": "gradient"},
    ),
    "dhalion": PolicyEntry(
        f"{_P}.dhalion.dhalion_policy:Dhalion", "Dhalion", parameters=f"{_P}.dhalion.dhalion_options:Options"
    ),
    "mdp": _learning_agent("CentralisedMdp", "centralised MDP", "CentralisedOptions"),
    "rl_plus": _learning_agent("CentralisedRlPlus", "centralised RL, response model known", "CentralisedOptions"),
    "rl": _learning_agent("CentralisedRl", "centralised RL", "CentralisedOptions"),
    "rl_decentralised": _learning_agent("DecentralisedRl", "decentralised RL", "DecentralisedOptions"),
    "phoebe": PolicyEntry(
        f"{_P}.phoebe.phoebe_policy:Phoebe",
        "Phoebe",
        Decides.AHEAD,
        needs_profile=True,
        parameters=f"{_P}.phoebe.phoebe_options:PhoebeOptions",
    ),
    "twres": PolicyEntry(
        f"{_P}.phoebe.twres:Twres",
        "TWRES",
        Decides.AHEAD,
        needs_profile=True,
        parameters=f"{_P}.phoebe.phoebe_options:TwresOptions",
    ),
    "flink_autoscaler": PolicyEntry(
        f"{_P}.flink_autoscaler.autoscaler_policy:FlinkAutoscaler", "Flink autoscaler, defaults", parameters=_AUTOSCALER
    ),
    "flink_autoscaler_tuned": PolicyEntry(
        f"{_P}.flink_autoscaler.autoscaler_policy:FlinkAutoscaler",
        "Flink autoscaler, tuned",
        parameters=_AUTOSCALER,
        preset={"utilization_target": 0.8, "target_utilization_boundary": 0.1},
    ),
    "reactive": PolicyEntry(
        f"{_P}.baselines.reactive:Reactive",
        "Flink reactive mode with a CPU rule",
        parameters=f"{_P}.baselines.baseline_options:ReactiveOptions",
    ),
    "static": PolicyEntry(
        f"{_P}.baselines.static:Static",
        "no rescale at all",
        observes=False,
        parameters=f"{_P}.baselines.baseline_options:StaticOptions",
    ),
}


REFERENCES = ("static_max", "static_mean", "clairvoyant")
"""What policies are compared with in a backtest or replay; no job can have one."""
ABLATIONS = (
    "planner_no_uncertainty",
    "planner_no_recovery",
    "planner_no_lead",
    "planner_no_margin",
    "planner_no_failure_margin",
    "planner_no_restart_reaction",
    "planner_no_overload_reaction",
    "planner_no_reactive",
)
"""The planner without one of its parts each, which can be compared as well."""


@lru_cache(maxsize=1)
def catalogue() -> Mapping[str, PolicyEntry]:
    """Return all policies by name: the built-in ones, then those of other projects.

    Raises:
        PolicyCatalogueError: two policies have one name, or an entry point names no entry.
    """
    result, owners = dict(BUILT_IN), dict.fromkeys(BUILT_IN, "Tidewise")
    for point in entry_points(group=GROUP):
        owner = point.dist.name if point.dist else point.value
        if point.name in result:
            raise PolicyCatalogueError(
                f"two policies are called {point.name!r}, of {owners[point.name]} and of {owner}; "
                f"rename the entry point of {owner}"
            )
        if not re.fullmatch(r"[a-z][a-z0-9_]*", point.name):
            raise PolicyCatalogueError(
                f"policy {point.name!r} of {owner}: a name has small letters, digits and underscores; rename it"
            )
        try:
            entry = point.load()
        except Exception as error:
            raise PolicyCatalogueError(f"policy {point.name!r} of {owner} cannot be loaded: {error!r}") from error
        if not isinstance(entry, PolicyEntry):
            raise PolicyCatalogueError(f"policy {point.name!r} of {owner}: {point.value} is no PolicyEntry")
        result[point.name], owners[point.name] = entry, owner
    return result


def entry_of(name: str) -> PolicyEntry:
    """Return what is known of a policy.

    Raises:
        PolicyCatalogueError: there is none of that name.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    check_names([name])
    return catalogue()[name]


def check_names(names: Iterable[str], also: Collection[str] = ()) -> None:
    """Refuse names that no policy has.

    Args:
        names: as written.
        also: further names that can be chosen.

    Raises:
        PolicyCatalogueError: with the nearest name, or all that can be chosen.
    """
    known = {*catalogue(), *also}
    for name in sorted(set(names) - known):
        raise PolicyCatalogueError(f"no policy is called {name!r}; write {nearest(name, known)}")


def nearest(name: str, known: Collection[str]) -> str:
    """Return the known name nearest to a misspelt one; without a near one all known names."""
    close = get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return close[0] if close else f"one of {', '.join(sorted(known))}"


def names_where(**facts: object) -> frozenset[str]:
    """Return the names of the policies of which all facts hold: ``names_where(learns_nightly=True)``."""
    return frozenset(
        name
        for name, entry in catalogue().items()
        if all(getattr(entry, fact) == value for fact, value in facts.items())
    )


def import_object(path: str) -> Any:
    """Import what a path ``module:attribute`` names."""
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


def decides_at_evaluations(name: str) -> bool:
    """Whether a policy, other than the planner, decides at every evaluation."""
    return entry_of(name).decides is Decides.REACTS
