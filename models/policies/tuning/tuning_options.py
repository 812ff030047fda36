"""Parameters of ContTune's steps; of all of them the paper publishes values for alpha and K alone."""

from __future__ import annotations

from enum import StrEnum

ALPHA = 3
KEEP = 5


class Acquisition(StrEnum):
    """How the next parallelism is chosen."""

    FEASIBLE = "feasible"  # Eq. 5: the smallest p whose expected ability suffices
    CEI = "cei"  # Eq. 4: constrained expected improvement
    LINEAR = "linear"  # none: always DS2
