"""Values that are made from other values by name: each once, as soon as those that it needs are there, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any


@dataclass(frozen=True, slots=True)
class Node:
    """How one value is made.

    Attributes:
        name: of the value.
        make: returns it.
        needs: names of the values that ``make`` takes, in order.
    """

    name: str
    make: Callable[..., Any]
    needs: tuple[str, ...] = ()


def run_graph(nodes: Sequence[Node], given: Mapping[str, Any], pool: Executor) -> dict[str, Any]:
    """Make every value; returns them by name, with the given ones.

    Args:
        nodes: in any order; of those that could begin at the same time, the earlier begins first.
        given: values that are there already.
        pool: runs the nodes.

    Raises:
        KeyError: a node needs a value that is neither given nor made.
        graphlib.CycleError: nodes need each other in a circle.
        Exception: what a node raised; nodes that have not begun by then are left out.
    """
    by_name = {node.name: node for node in nodes}
    unknown = {need for node in nodes for need in node.needs} - by_name.keys() - given.keys()
    if unknown:
        raise KeyError(f"no node makes {', '.join(sorted(unknown))}")
    order = TopologicalSorter({node.name: by_name.keys() & set(node.needs) for node in nodes})
    order.prepare()
    values, running = dict(given), dict[Future[Any], str]()
    try:
        while order.is_active():
            for name in order.get_ready():
                node = by_name[name]
                running[pool.submit(node.make, *[values[need] for need in node.needs])] = name
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                name = running.pop(future)
                values[name] = future.result()
                order.done(name)
    finally:
        for future in running:
            future.cancel()
    return values
