"""The page of ``tidewise advise``, shown as it was written but for its link to the fleet."""

from __future__ import annotations

import base64
import hashlib
import re

_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)


def link_to_fleet(text: str) -> str:
    """Return it with the live page in the place of the saved one."""
    return text.replace('href="report.html"', 'href="./"', 1)


def advice_policy(text: str) -> str:
    """Return the policy under which it is shown: its own style sheets, named by their hashes, and nothing else."""
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in _STYLE.findall(text)]
    styles = " ".join(f"'sha256-{one}'" for one in digests) or "'none'"
    return f"default-src 'none'; style-src {styles}; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
