"""Learning of capacities from windows, of ContTune; several policies use it."""

from typing import Final

KEEP: Final = 5
"""K, which is not published: five samples per parallelism by the README of ContTune's repository."""
