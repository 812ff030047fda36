"""Which tables and figures each paper has, which of them are run here, and what counts as agreement.

``data/papers/registry/<paper>.toml`` lists every table and figure.  Tolerances stand there with their reason, so that
they are chosen before the figures are seen; reasons of a difference and of what is not run stand there too.
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from include.settings import PROJECT

FOLDER = PROJECT / "data" / "papers" / "registry"
Status = Literal["result", "fitted", "unpublished", "same run", "reading", "input", "ours", "not attempted"]
# Cells of these are compared; only those of the first count as agreement.
COMPARED = frozenset({"result", "fitted", "unpublished", "same run", "reading"})
# Cells of these come out of every run; of an input one may.
FROM_RUNS = COMPARED | {"ours"}
Names = Annotated[tuple[str, ...], Field(min_length=1)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tolerance(_Section):
    """How far ours may be from the published figure: a share of it, or an amount, whichever is more; and why."""

    share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    amount: Annotated[float, Field(ge=0)] = 0.0
    reason: Annotated[str, Field(min_length=10)]

    def admits(self, ours: float, published: float) -> bool:
        """Return whether two figures agree; rounding of floating point does not count."""
        return abs(ours - published) <= max(self.share * abs(published), self.amount) + 1e-9 * abs(published)

    def __str__(self) -> str:
        parts = [f"{100 * self.share:g}%"] if self.share else []
        parts += [f"{self.amount:g}"] if self.amount else []
        return " or ".join(parts) or "0"


class Because(_Section):
    """Why cells differ: ``rows`` and ``columns`` are patterns of names (``*`` for all)."""

    rows: Names = ("*",)
    columns: Names = ("*",)
    text: Annotated[str, Field(min_length=10)]

    def covers(self, row: str, column: str) -> bool:
        """Return whether a cell is meant."""
        return any(fnmatchcase(row, one) for one in self.rows) and any(fnmatchcase(column, one) for one in self.columns)


class Block(_Section):
    """Cells that a table of the paper has: all pairs of ``rows`` and ``columns``.

    Attributes:
        rows, columns: names, as in the results.
        status: "result" is compared.  The next four differ beyond the tolerance as well, and within it each has a
            verdict of its own: "fitted", what the experiment was fitted to, or what follows from that alone;
            "unpublished", held against words or a plot, since the paper has no number; "same run", another cell of
            a run that counts elsewhere; "reading", what the paper leaves open was read as its figures need it.
            "input" went in as it is.  "ours" is a variant of our own beside the paper's rows.  A run must give all of
            these but inputs.
        reason: why they are no result, or not attempted.
        published: (rows, columns) figures of cells that no run gives; an empty text where the text has none.
        unit: of those.
        tolerance: None for the table's.
        at_most: what the paper says that the figures do not exceed, where it gives no more.
    """

    rows: Names
    columns: Names
    status: Status = "result"
    reason: str = ""
    published: tuple[tuple[float | str, ...], ...] = ()
    unit: str = ""
    tolerance: Tolerance | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _whole(self) -> Block:
        if self.status != "result" and not self.reason:
            raise ValueError(f"cells that are {self.status!r} need a reason")
        if self.published and self.status in FROM_RUNS:
            raise ValueError("published figures of results come with them")
        if self.published and [len(row) for row in self.published] != [len(self.columns)] * len(self.rows):
            raise ValueError("published needs a row for each of rows, with a figure for each of columns")
        return self

    def names(self) -> list[tuple[str, str]]:
        """Return (row, column) of every cell."""
        return [(row, column) for row in self.rows for column in self.columns]

    def published_figure(self, row: str, column: str) -> float | str | None:
        """Return what the paper prints, where it is given here."""
        return self.published[self.rows.index(row)][self.columns.index(column)] if self.published else None


class Item(_Section):
    """One table or figure of a paper, or a section whose text has figures.

    Attributes:
        id: as in the results ("4a").
        label: as the paper calls it ("Table 4a").
        title: what it shows.
        tolerance: None when none of its cells is compared.
        censored_at: the longest time that is told apart: a figure there says "at least", so that it can differ from
            another one and never agree with it.
        cells: all that it has.
        because: reasons of differences, the first that fits counts.
        nothing: why it has no cell that a decision system could have; empty when it has.
    """

    id: str
    label: str
    title: str
    tolerance: Tolerance | None = None
    censored_at: float | None = None
    cells: tuple[Block, ...] = ()
    because: tuple[Because, ...] = ()
    nothing: str = ""

    @model_validator(mode="after")
    def _has_cells_or_reason(self) -> Item:
        if bool(self.cells) == bool(self.nothing):
            raise ValueError(f"{self.label}: either cells, or why there are none")
        compared = [block for block in self.cells if block.status in COMPARED and block.at_most is None]
        if self.tolerance is None and any(block.tolerance is None for block in compared):
            raise ValueError(f"{self.label}: results need a tolerance")
        return self

    def reason_of(self, row: str, column: str) -> str:
        """Return why a cell differs; empty when nobody has found out."""
        return next((one.text for one in self.because if one.covers(row, column)), "")


class Plot(_Section):
    """A plot of the experiments that the page shows."""

    file: str
    title: str


class PaperRegistry(_Section):
    """All tables and figures of one paper, in the order of the page."""

    title: str
    source: str
    plots: tuple[Plot, ...] = ()
    notes: tuple[str, ...] = ()
    items: tuple[Item, ...]

    @model_validator(mode="after")
    def _each_once(self) -> PaperRegistry:
        ids = [item.id for item in self.items]
        if len(ids) != len(set(ids)):
            raise ValueError(f"a table or figure is listed twice: {sorted(one for one in ids if ids.count(one) > 1)}")
        return self


class RegistryError(ValueError):
    """A registry that cannot be used; the message is one line."""


def read_registry(paper: str, folder: Path = FOLDER) -> PaperRegistry:
    """Return a paper's registry.

    Raises:
        RegistryError: the file is missing or does not follow the format.
    """
    path = folder / f"{paper}.toml"
    try:
        return PaperRegistry.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise RegistryError(f"{path.name}: {faults}") from error
    except (OSError, ValueError) as error:  # tomllib's errors are ValueErrors
        raise RegistryError(f"{path.name}: {error}") from error
