"""What became of each changed rule: a file that an interrupted run goes on from, and what is said of it."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from include.settings import PROJECT
from tools.rule_breaks import Break
from tools.rule_trials.trial_process import MISSED, UNTRIED

BY_TYPES, SURVIVED = "noticed by the types", "survived"
SURVIVED_QUICK = "survived the quick tests"
_NOT_NOTICED = frozenset({SURVIVED, SURVIVED_QUICK, MISSED, UNTRIED})
EQUIVALENTS = PROJECT / "tools" / "rule_trials" / "equivalent_rules.toml"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one change.

    Attributes:
        key: of the change.
        rule: its name.
        outcome: that it survived, or what noticed it.
        test: the test that noticed it; empty where none did, or it is not known which.
        digest: of the file of that test, or of all tests where none noticed.
    """

    key: str
    rule: str
    outcome: str
    test: str
    digest: str


class OutcomeFile:
    """Outcomes as lines of JSON, written one by one.

    An outcome counts as long as the changed file and the test that noticed are what they were; that of a change that
    no test noticed as long as all tests are.
    """

    def __init__(self, file: Path, root: Path, tests: Sequence[str]) -> None:
        self._file, self._root, self._all = file, root, make_digest([root / test for test in tests])

    def read(self) -> dict[str, Outcome]:
        """Return the outcomes that still count, by the key of the change."""
        lines = self._file.read_text().splitlines() if self._file.is_file() else []
        stored = [Outcome(**json.loads(line)) for line in lines if line.endswith("}")]
        return {one.key: one for one in stored if one.digest == self._digest(one.test)}

    def forget(self) -> None:
        """Remove the file."""
        self._file.unlink(missing_ok=True)

    def add(self, changed: Break, outcome: str, test: str) -> Outcome:
        """Write an outcome down."""
        result = Outcome(changed.key, changed.name, outcome, test, self._digest(test))
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as stream:
            stream.write(json.dumps(asdict(result)) + "\n")
        return result

    def _digest(self, test: str) -> str:
        file = self._root / test.partition("::")[0]
        return make_digest([file]) if "::" in test and file.is_file() else self._all


def make_digest(files: Iterable[Path]) -> str:
    """Return what stays the same until one of the files is changed."""
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]


def read_equivalents(file: Path = EQUIVALENTS) -> dict[str, str]:
    """Return the changes that make no difference, ``file function kind: text`` -> why."""
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    return {f"{source} {change}": why for source, changes in table.items() for change, why in changes.items()}


def summarise(name: str, tried: Sequence[tuple[Break, str]], equivalents: dict[str, str]) -> list[str]:
    """Return how many changes were noticed and by what, and below it those that were not."""
    survivors = [one for one, outcome in tried if outcome in _NOT_NOTICED]
    equal = [one for one in survivors if one.place in equivalents]
    remaining, counted = [one for one in survivors if one.place not in equivalents], len(tried) - len(equal)
    noticed = counted - len(remaining)
    share = f" ({noticed / counted:.1%})" if counted else ""
    lines = [f"{name}: {noticed} of {counted} changed rules noticed{share}; {len(equal)} more are listed as equivalent"]
    for outcome, count in sorted(Counter(outcome for _, outcome in tried if outcome != SURVIVED).items()):
        lines.append(f"    {count} {outcome}")
    return lines + [f"    survived: {one.name}" for one in remaining]


def list_wrong_equivalents(
    tried: Sequence[tuple[Break, str]], equivalents: Iterable[str], files: Iterable[str]
) -> list[str]:
    """Return what is listed as equivalent and was noticed, or is no change of the files."""
    outcomes = {one.place: outcome for one, outcome in tried}
    return [place for place in equivalents if place.partition(" ")[0] in files and outcomes.get(place) != SURVIVED]


def print_progress(total: int, shown: TextIO, every: int = 50) -> Callable[[str], None]:
    """Return what is called with each outcome and prints the figure so far now and then."""
    counts = Counter[str]()

    def note(outcome: str) -> None:
        counts[outcome] += 1
        tried = counts.total()
        if tried % every == 0 or tried == total:
            noticed = tried - sum(counts[one] for one in _NOT_NOTICED)
            line = f"mutate-rules: {tried} of {total} tried, {noticed} noticed ({noticed / tried:.1%})"
            print(line, file=shown, flush=True)

    return note
