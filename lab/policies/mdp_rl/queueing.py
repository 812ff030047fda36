"""Response model of an operator: every instance an M/D/1 queue that gets an even share of the operator's input.

| name | meaning | unit |
| --- | --- | --- |
| lambda | input of a whole operator | records/s |
| mu | records that one instance serves | records/s |
| rho, U | utilisation, lambda / (k mu) | 1 |
| R | response time, waiting and service | s |
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from include.domain.graph import JobGraph
from models.arrays import Floats

DETERMINISTIC = 0.0  # squared coefficient of variation of the service time in M/D/1; 1 would be M/M/1


def utilisation(rate_per_s: npt.ArrayLike, instances: npt.ArrayLike, service_per_s: npt.ArrayLike) -> Floats:
    """Return rho = lambda / (k mu), all broadcast; infinite where records come and nothing serves them."""
    rate, served = np.asarray(rate_per_s, float), np.asarray(instances) * np.asarray(service_per_s, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(rate > 0, rate / served, 0.0), float)


def response_s(rho: npt.ArrayLike, service_per_s: npt.ArrayLike, variation: float = DETERMINISTIC) -> Floats:
    """Return R = 1/mu + rho (1 + c^2) / (2 mu (1 - rho)), Pollaczek and Khinchine's mean; infinite for rho >= 1.

    Args:
        rho: (...) utilisation of an instance.
        service_per_s: (...) mu.
        variation: c^2 of the service time; 0 gives M/D/1 as in the paper.
    """
    busy, mu = np.asarray(rho, float), np.asarray(service_per_s, float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # infinite is what it then is
        wait = busy * (1.0 + variation) / (2.0 * mu * (1.0 - busy))
        return np.asarray(np.where(busy < 1.0, 1.0 / mu + wait, np.inf), float)


def longest_path(graph: JobGraph, response: Mapping[str, Floats]) -> Floats:
    """Return the response time of an application: the largest sum over its paths from a source to a sink.

    The paper has pipelines only, whose response is the plain sum.

    Args:
        graph: the application.
        response: operator -> response times that broadcast against each other; one that is missing counts as 0.
    """
    arrived: dict[str, Floats] = {}
    for operator in graph.operators:
        before = [arrived[name] for name in operator.upstream]
        start = np.maximum.reduce(np.broadcast_arrays(*before)) if before else np.zeros(())
        arrived[operator.name] = np.asarray(start + response.get(operator.name, np.zeros(())), float)
    return np.asarray(np.maximum.reduce(np.broadcast_arrays(*arrived.values())), float)
