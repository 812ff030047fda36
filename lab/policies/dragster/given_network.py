"""A job's network with the throughput functions and weights that a person gave in place of those learnt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lab.policies.dragster.network import SINK, OperatorNetwork
from lab.policies.dragster.throughput import Linear, Minimum, Tanh, ThroughputFunction
from lab.policies.dragster.throughput_settings import GivenForm, GivenSplit, GivenThroughput


class MisfitError(ValueError):
    """Something given names what the job does not have; the message is one sentence."""


def apply_given(net: OperatorNetwork, h: Sequence[GivenThroughput], alpha: Sequence[GivenSplit]) -> OperatorNetwork:
    """Return the network with what is given; edges of which nothing is given stay as they are.

    Args:
        net: learnt, or with the defaults.
        h: throughput functions, each edge once.
        alpha: splitting weights, those of one operator with the sum 1.

    Raises:
        MisfitError: an operator, successor or predecessor is not in the graph, or a weight of one is missing.
    """
    functions, split = dict(net.functions), dict(net.split)
    for one in h:
        below = _successors(net, "h", one.i)
        predecessors = next(each.upstream for each in net.graph.operators if each.name == one.i)
        if isinstance(one.k, dict):
            _compare(f"k of h of {one.i!r}", one.k, "predecessors", predecessors)
        if one.j is not None and one.j not in below:
            raise MisfitError(f"h of {one.i!r} names {one.j!r}, which is none of its successors: {_names(below)}.")
        function = _function(one, predecessors)
        functions |= {(one.i, successor): function for successor in below if one.j in (None, successor)}
    for name in dict.fromkeys(one.i for one in alpha):
        given = {one.j: one.alpha_ij for one in alpha if one.i == name}
        _compare(f"alpha of {name!r}", given, "successors", _successors(net, "alpha", name))
        split |= {(name, successor): share for successor, share in given.items()}
    return replace(net, functions=functions, split=split)


def _function(given: GivenThroughput, predecessors: Sequence[str]) -> ThroughputFunction:
    """Return h for an operator's predecessors, in their order; a table of weights has each of them."""
    weights = tuple(given.k[name] for name in predecessors) if isinstance(given.k, dict) else (given.k,)
    if given.form is GivenForm.TANH:
        return Tanh(given.k1 or 0.0, weights)
    return Minimum(weights) if given.form is GivenForm.MIN else Linear(weights)


def _successors(net: OperatorNetwork, what: str, name: str) -> tuple[str, ...]:
    if name not in net.tuned:
        why = "a source, which has none" if name in net.graph.sources else "no operator of the job"
        raise MisfitError(f"{what} is given for {name!r}, {why}; operators that have one: {_names(net.tuned)}.")
    return net.successors(name)


def _compare(what: str, given: Iterable[str], kind: str, known: Iterable[str]) -> None:
    if set(given) != set(known):
        raise MisfitError(f"{what} is given for {_names(given)}, and its {kind} are {_names(known)}.")


def _names(names: Iterable[str]) -> str:
    return ", ".join("the sink" if name == SINK else repr(name) for name in dict.fromkeys(names))
