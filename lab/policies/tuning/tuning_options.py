"""Parameters of ContTune's steps."""

from __future__ import annotations

from enum import StrEnum

ALPHA = 3


class Acquisition(StrEnum):
    """How the next parallelism is chosen."""

    FEASIBLE = "feasible"  # Eq. 5: the smallest p whose expected ability suffices
    CEI = "cei"  # Eq. 4: constrained expected improvement
    LINEAR = "linear"  # none: always DS2
