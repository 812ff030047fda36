"""Policies by name, each with everything that is to be known of it before it is imported.

A policy is one package and one entry.  That of the product stands here.  Those of other distributions, the laboratory
among them, are entry points of the group ``tidewise.policies``: the name is the policy's, the value ``module:ENTRY``
names a :class:`PolicyEntry` in a module that imports nothing heavy, since DAG files read it.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from typing import Any

from include.entry_points import LABORATORY, EntryRegistry

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
    """A policy that is not known."""


_TIDEWISE = "models.policies.tidewise"
BUILT_IN: Mapping[str, PolicyEntry] = {
    "programme": PolicyEntry(
        f"{_TIDEWISE}.programme_policy:Programme",
        "Tidewise: a Markov decision process at every evaluation",
        Decides.REPLANS,
        slot_problem=f"{_TIDEWISE}.programme_policy:price_slots",
        past_learner=f"{_TIDEWISE}.past_law:learn_past_loads",
    ),
}
"""That of the product; earlier ones, and those of papers and peers, are entry points of the laboratory."""
_RENAMED = {"planner_v2": "planner"}
_ABLATIONS = "planner_no_"
REFERENCES = ("static_max", "static_mean", "clairvoyant")
"""What policies are compared with in a backtest or replay; no job can have one."""
WITHOUT_PLANS = "programme_no_forecast"
"""The programme as it decides without plans, which backtests and advice have beside it; no job can have it."""


@lru_cache(maxsize=1)
def catalogue() -> Mapping[str, PolicyEntry]:
    """Return all policies by name: the built-in ones, then those of other distributions, loaded when asked for.

    Raises:
        EntryPointError: (a ValueError) two policies have one name, or a name is misspelt.
    """
    return EntryRegistry(GROUP, PolicyEntry, BUILT_IN)


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
    """Refuse names that no policy has, and that are not among those that can be chosen ``also``.

    Raises:
        PolicyCatalogueError: with the nearest name, or all that can be chosen.
    """
    known = {*catalogue(), *also}
    for name in sorted(set(names) - known):
        raise PolicyCatalogueError(f"no policy is called {name!r}; {_suggest(name, known)}")


def _suggest(name: str, known: Collection[str]) -> str:
    """Return what to write in the place of a name that no policy has."""
    if name.startswith(_ABLATIONS):
        return "remove it: the planner without one of its parts runs in `make replay` alone"
    remedy = f"write {_RENAMED.get(name) or nearest(name, known)}"
    if catalogue().keys() == BUILT_IN.keys():
        return f"{remedy}, or install {LABORATORY} (lab/), which brings all other policies"
    return remedy


def nearest(name: str, known: Collection[str]) -> str:
    """Return the known name nearest to a misspelt one; without a near one all known names."""
    close = get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return close[0] if close else f"one of {', '.join(sorted(known))}"


def names_where(among: Iterable[str], **facts: object) -> frozenset[str]:
    """Return those of some policies of which all facts hold: ``names_where(names, learns_nightly=True)``."""
    entries = {name: entry_of(name) for name in among}
    return frozenset(
        name for name, entry in entries.items() if all(getattr(entry, fact) == value for fact, value in facts.items())
    )


def import_object(path: str) -> Any:
    """Import what a path ``module:attribute`` names."""
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)
