"""Which Python runs the controller and Spark's driver on a worker."""

from __future__ import annotations

import sys

from include.settings import PROJECT


def find_python() -> str:
    """Return the Python of the checkout's ``.venv``; where there is none, that of Airflow itself.

    An Airflow of one's own has packages enough to parse the DAGs and to submit, not all that the controller imports.
    """
    own = PROJECT / ".venv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable
