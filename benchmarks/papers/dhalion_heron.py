"""Dhalion on the Heron word count of DS2's Section 5.2: what DS2 reaches in one step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lab.policies.dhalion.dhalion_inputs import readings
from lab.policies.dhalion.dhalion_options import DhalionOptions
from lab.policies.dhalion.rules import resolve
from lab.simulation.spec import JobSpec, OperatorSpec
from lab.simulation.testbed import Testbed, observations

_MIN = 60.0
# Section 5.2: 1M sentences/min, of which an instance splits 100K; an instance counts 1M words/min; 10 and 20 instances
# suffice, hence 20 words per sentence.
SENTENCES_PER_S, SPLIT_PER_S, COUNT_PER_S, WORDS = 1e6 / _MIN, 1e5 / _MIN, 1e6 / _MIN, 20.0
QUEUE_BYTES = 100 * 2**20  # Section 5.2
# Not published: a sentence is 20 words of 6 bytes, and a source works off its queue at up to 1.5 times its rate.
SENTENCE_BYTES, CATCH_UP = 120.0, 1.5
_WINDOW_S, _ACTION_S = 60, 300  # metrics interval; time that Dhalion leaves the queues after an action
_LIMIT = 64


@dataclass(frozen=True, slots=True)
class HeronRun:
    """Outcome of Dhalion.

    Attributes:
        path: instances of (split, count) after each action, the start first.
        seconds: until the last action.
    """

    path: tuple[tuple[int, int], ...]
    seconds: float

    @property
    def instances(self) -> int:
        """Of both operators in the end."""
        return sum(self.path[-1])


def dhalion_on_heron(seconds: float = 7200.0) -> HeronRun:
    """Run Dhalion from one instance each.

    A queue of 100 MiB fills while the job is slow; as long as it is worked off the source stays in backpressure, and
    Dhalion goes on scaling: that is how it ends above the (10, 20) that suffice.
    """
    operators = (
        OperatorSpec("source", (), CATCH_UP * SENTENCES_PER_S, contention=0.0),
        OperatorSpec("split", ("source",), SPLIT_PER_S, contention=0.0, selectivity=WORDS),
        OperatorSpec("count", ("split",), COUNT_PER_S, contention=0.0),
    )
    spec = JobSpec("heron", operators, slots_max=_LIMIT, state_bytes_per_record=0.0)
    graph, names = spec.graph(), spec.graph().names
    now = np.array([1, 1, 1])
    bed, rates = (
        Testbed([spec], now[None], step_s=_WINDOW_S, has_buffers=False),
        np.array([[SENTENCES_PER_S, 0.0, 0.0]]),
    )
    path, windows, last_s = [(1, 1)], [], 0.0
    while bed.time_s < seconds:
        windows.append(bed.run(rates, _WINDOW_S))
        np.minimum(bed.state.backlog, QUEUE_BYTES / SENTENCE_BYTES, out=bed.state.backlog)
        if bed.time_s - last_s < _ACTION_S:
            continue
        observed = observations(windows[-1:], 0, len(names))
        result = readings(graph, observed, dict(zip(names, map(int, now), strict=True)), np.full(len(names), _LIMIT))
        action = resolve(DhalionOptions(), result)
        if action is not None:
            now = now.copy()
            now[graph.position(action.operator)] = action.instances
            bed.rescale(0, now, float(_WINDOW_S))
            path.append((int(now[1]), int(now[2])))
            last_s = bed.time_s
    return HeronRun(tuple(path), last_s)
