"""The paper's own figures, and the settings that all of its experiments share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab.policies.ds2.ds2_options import ManagerOptions

PUBLISHED: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[3] / "data" / "papers" / "ds2.json").read_text(encoding="utf-8")
)

# Roll-back and decision limit are off: the paper describes them, the code that it measured has neither.
# Each experiment's window is its policy interval, which is never shorter than a window.
AS_PUBLISHED = ManagerOptions(policy_interval_s=1.0, target_rate_ratio=1.0, degradation=1.0, max_fruitless=0)
