"""One figure of ours beside the published one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table of a paper.

    Attributes:
        paper: ds2, conttune, dragster, mdp_rl or phoebe.
        table: as the paper numbers it ("4a"), or the section for a figure in the text.
        row, column: names in that table.
        ours: the mean over seeds.
        published: None where the paper gives no figure.
        unit: of both.
        seeds: how many runs ``ours`` is the mean of.
        spread: standard deviation over them; None for a single or deterministic run.
    """

    paper: str
    table: str
    row: str
    column: str
    ours: float
    published: float | None
    unit: str
    seeds: int = 1
    spread: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the cell as JSON types."""
        return asdict(self)
