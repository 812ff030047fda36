"""The settings that give single jobs the policies that a comparison recommends for them."""

from __future__ import annotations

import json
from collections.abc import Mapping


def policy_lines(policies: Mapping[str, str]) -> list[str]:
    """Return the lines of ``tidewise.toml``; none without any policy.

    Args:
        policies: ``cluster/job`` -> name of a policy.

    >>> policy_lines({"prod/orders": "controller_alone"})
    ['[planner.policies]', '"prod/orders" = "controller_alone"']
    """
    lines = [f"{json.dumps(job)} = {json.dumps(policy)}" for job, policy in sorted(policies.items())]
    return ["[planner.policies]", *lines] if lines else []
