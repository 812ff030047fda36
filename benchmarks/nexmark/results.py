"""The results of a run as JSON: written, and read back by a later run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.nexmark.experiment import JobTrial, Truth
from cli.arguments import UsageError


def format_results(
    truths: Mapping[str, Truth], trials: Mapping[str, Mapping[str, JobTrial]]
) -> dict[str, dict[str, Any]]:
    """Return what :func:`read_results` reads."""
    return {
        "truths": {name: asdict(one) for name, one in truths.items()},
        "trials": {name: {policy: asdict(one) for policy, one in jobs.items()} for name, jobs in trials.items()},
    }


def read_results(path: Path) -> tuple[dict[str, Truth], dict[str, dict[str, JobTrial]]]:
    """Return query -> truth, and query -> policy -> what happened, of a run.

    Raises:
        UsageError: the file is missing, or of another format.
    """
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        truths = {name: _read_truth(one) for name, one in result["truths"].items()}
        trials = {
            name: {policy: JobTrial(**one) for policy, one in jobs.items()} for name, jobs in result["trials"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} holds no results of `make nexmark`: {error}") from error
    return truths, trials


def _read_truth(values: Mapping[str, Any]) -> Truth:
    """Return a truth; JSON has texts for keys that are numbers."""
    truth = Truth(**values)
    for name, kind in (
        ("capacity_per_s", int),
        ("saturated", int),
        ("job_per_s", int),
        ("inflow_per_s", float),
        ("busy", float),
    ):
        setattr(truth, name, {kind(key): one for key, one in getattr(truth, name).items()})
    return truth
