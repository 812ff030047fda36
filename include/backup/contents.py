"""What a backup holds: what no stage can make again from raw files, or all tables."""

from __future__ import annotations

from include.control import approvals, holds, lifted_blocks, pins
from include.tables import (
    BY_PERSONS,
    CONTROL_LOG,
    CONTROLLER_MEMORY,
    FORECASTS,
    INGESTED,
    JOB_WINDOWS,
    RESCALE_OUTCOMES,
    TABLES,
    Table,
)

NEVER: tuple[Table, ...] = (CONTROLLER_MEMORY,)
"""What the controller remembers counts for hours and says what a job was to run at: an old one would be acted on."""

MADE_AGAIN: tuple[Table, ...] = (*INGESTED, JOB_WINDOWS, FORECASTS)
"""Ingestion makes its tables from raw files, all of them together: ``ops.files`` tells which files it has read. Stages
make the others of them."""

RECORDS: tuple[Table, ...] = (
    CONTROL_LOG,
    *BY_PERSONS,
    RESCALE_OUTCOMES,
    *(one for one in TABLES if one not in MADE_AGAIN),
)
"""What was done, promised and learnt: raw files do not tell it."""

PERSONS = (holds.FOLDER, pins.FOLDER, lifted_blocks.FOLDER, approvals.FOLDER)
"""Folders of small objects. Of the answers to steps only a no is put back: a yes may have allowed its request since.
Orders to undo are in none: one may have been carried out."""
