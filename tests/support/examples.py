"""How many examples a property is tried on: in `make test` as many as a test names, in `make test-long` a multiple."""

from __future__ import annotations

import os

TIMES = int(os.environ.get("TIDEWISE_TIMES_EXAMPLES", "1"))
