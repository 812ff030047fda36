"""Memory of the agents of a real job: sparse counts and estimates, from which the values are solved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Knowledge of one agent about its rate and the configurations that it ran.

    Attributes:
        quantum_per_s: rate of one level, records/s; 0 as long as no record came.
        last_level: level of the last window; -1 when it is not known.
        transitions: (level, next level, times) of Eq. 5, ascending, only those that happened.
        penalties: (level, instances of each operator after the action, c-hat_u of Eq. 6), ascending, only those seen.
    """

    quantum_per_s: float = 0.0
    last_level: int = -1
    transitions: tuple[tuple[int, int, int], ...] = ()
    penalties: tuple[tuple[int, tuple[int, ...], float], ...] = ()

    @property
    def slots(self) -> int:
        """Transitions counted so far."""
        return sum(times for _, _, times in self.transitions)


@dataclass(frozen=True, slots=True)
class AgentsMemory:
    """Memory of a job's agents.

    Attributes:
        last_window_s: epoch seconds at which the last window that was learnt from began; -1 before the first.
        decided_window_s: the same of the last window that a decision has used; -1 before the first, and after a
            history was learnt from by night.
        agents: name of an operator, or ``JOB`` for the one agent of a centralised policy -> what it has learnt.
        planned: the same at the last nightly solution; only a policy that plans by night has it.
        planned_day: days since the epoch of that night; -1 before the first.
    """

    last_window_s: int = -1
    decided_window_s: int = -1
    agents: Mapping[str, Knowledge] = field(default_factory=dict)
    planned: Mapping[str, Knowledge] = field(default_factory=dict)
    planned_day: int = -1


JOB = ""  # no operator has an empty name
