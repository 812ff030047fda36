"""The paper's own figures, and the measured capacities that its repository lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PAPER = "conttune"
PUBLISHED: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[3] / "data" / "papers" / "conttune.json").read_text(encoding="utf-8")
)
QUERIES = ("WordCount", "Q1", "Q2", "Q3", "Q5", "Q8")
IDEAL_S = 72_000.0  # 600 s of source data in each of 120 tunings
TUNINGS = 120
