"""The immediate cost of a slot, Eq. 1 and 2 of the paper, and its average over a run."""

from __future__ import annotations

from dataclasses import dataclass

DISCOUNT = 0.99  # gamma
LEARNING_RATE = 0.1  # alpha of Eq. 6


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the cost terms; the defaults are the paper's.

    Attributes:
        resources: w_res, times the share of the largest configuration that is in use.
        reconfiguration: w_rcf, per slot in which any operator is rescaled.
        violation: w_SLA or w_util, per slot in which the response time or the utilisation is too high.

    Raises:
        ValueError: negative weights, or a sum other than 1.
    """

    resources: float = 0.2
    reconfiguration: float = 0.4
    violation: float = 0.4

    def __post_init__(self) -> None:
        parts = (self.resources, self.reconfiguration, self.violation)
        if min(parts) < 0 or abs(sum(parts) - 1.0) > 1e-9:
            raise ValueError(f"weights must not be negative and must sum to 1, are {parts}")

    def average_cost(
        self, mean_instances: float, reconfigurations: int, violations: int, *, slots: int, most_instances: int
    ) -> float:
        """Return the average cost per slot of a run from its totals: the identity behind every row of Table 1."""
        share = mean_instances / most_instances
        rescaled, violated = reconfigurations / slots, violations / slots
        return self.resources * share + self.reconfiguration * rescaled + self.violation * violated


PAPER_WEIGHTS = Weights()
