"""Fingerprints of what policies decide: a change of decisions makes another one, a change of names does not.

A fingerprint is the hash of the slots that a policy had in each window of :data:`SITUATIONS`: four days of three
shipped traces, in which the first plans are made, with the noise and failures of one seed.  A row of a published table
bears the one that its policy had when it ran; ``published/fingerprints.csv`` has those of today, and tests compute some
of them anew.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.replay.evidence.studies import JOB, Unit, list_forms
from benchmarks.replay.evidence.unit_case import build_case
from benchmarks.replay.replay_cases import replay_case
from benchmarks.replay.tables import PUBLISHED
from include.atomic_write import write_text
from include.settings import PROJECT

SITUATIONS: Final = (("dsp_taxi_5min", ""), ("dsp_alibaba_5min", "slots_180s"), ("dsp_wiki_de_5min", ""))
"""Trace and scenario."""
DAYS: Final = 4.0
FILE: Final = PUBLISHED / "fingerprints.csv"
_DECIDES: Final = ("models", "include", "lab", "benchmarks/replay")
_DIGITS: Final = 12


def compute_fingerprint(policy: str, situations: Sequence[tuple[str, str]] = SITUATIONS) -> str:
    """Return the fingerprint of a policy, one part of twelve digits for each situation."""
    parts = []
    for trace, scenario in situations:
        case = build_case(Unit(trace, scenario, JOB, DAYS, (0,), policy), list_forms())
        slots = np.round(replay_case(case).slots[policy], 6)
        parts.append(hashlib.sha256(slots.tobytes()).hexdigest()[:_DIGITS])
    return "-".join(parts)


def read_fingerprints(path: Path = FILE) -> dict[str, str]:
    """Return policy -> fingerprint; none before the first run."""
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {row["policy"]: row["fingerprint"] for row in csv.DictReader(file)}


def write_fingerprints(known: Mapping[str, str], path: Path = FILE) -> None:
    """Write the file, sorted by name."""
    lines = ["policy,fingerprint", *(f"{name},{known[name]}" for name in sorted(known))]
    write_text(path, "\n".join(lines) + "\n")


def hash_sources(top: Path = PROJECT) -> str:
    """Return the hash of everything that decides in a replay: no fingerprint changes while it stays."""
    result = hashlib.sha256()
    for folder in _DECIDES:
        for path in sorted(path for ending in ("*.py", "*.toml") for path in (top / folder).rglob(ending)):
            if "published" not in path.parts and path.name != "studies.toml":
                result.update(path.relative_to(top).as_posix().encode() + path.read_bytes())
    return result.hexdigest()


def refresh_fingerprints(
    policies: Sequence[str], cache: Path, compute: Callable[[Sequence[str]], Mapping[str, str]]
) -> dict[str, str]:
    """Return policy -> fingerprint of today's code, each computed once for one state of the code.

    Args:
        policies: names.
        cache: file of what was computed.
        compute: names -> their fingerprints.
    """
    sources = hash_sources()
    known: dict[str, str] = {}
    if cache.is_file():
        read = json.loads(cache.read_text(encoding="utf-8"))
        known = read["fingerprints"] if read["sources"] == sources else {}
    missing = [name for name in policies if name not in known]
    if missing:
        known |= compute(missing)
        write_text(cache, json.dumps({"sources": sources, "fingerprints": known}, indent=1))
    return {name: known[name] for name in policies}
