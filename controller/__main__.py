"""``python -m controller``: follow jobs, evaluate them and bring them to what is desired, until a time."""

from __future__ import annotations

import sys

from controller.command import main

sys.exit(main(sys.argv[1:]))
