"""Policies by name, made from their entries in :mod:`include.policy_catalogue`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from include.policy_catalogue import entry_of, import_object
from include.policy_parameters import read_parameters
from models.policies.protocol import Policy


@dataclass(frozen=True, slots=True)
class MemoryCodec:
    """How a policy's memories become text and are read again.

    Attributes:
        dump: memory -> text; equal memories give the same text.
        load: the memory's class and a text -> memory; raises ValueError for a text that is none.
    """

    dump: Callable[[object], str]
    load: Callable[[type[Any], str], Any]


def policy(name: str, parameters: Mapping[str, object] | None = None) -> Policy[Any]:
    """Return a policy of the catalogue with the parameters of ``[policies.<name>]``; the others keep their defaults.

    Raises:
        PolicyCatalogueError: (a ValueError) no policy of that name.
        ValueError: it has no such parameters, or not of these values.
    """
    options, factory = read_parameters(name, parameters or {}), import_object(entry_of(name).factory)
    made: Policy[Any] = factory() if options is None else factory(options=options)
    return made


def memory_codec(name: str) -> MemoryCodec:
    """Return how a policy's memory is written and read."""
    module = importlib.import_module(entry_of(name).memory_codec)
    return MemoryCodec(module.dump, module.load)
