"""``make docs``: docs/metrics.md, from the metrics that ``tidewise status --prometheus FILE`` writes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cli.arguments import CommandParser
from controller.health import PREFIX, ControllerHealth
from fleet.facts import ClusterStatus, FleetStatus, JobStatus
from fleet.health import Fault
from fleet.loads import LoadFact
from fleet.metrics import MetricFamily, list_families
from include.atomic_write import write_text
from include.settings import PROJECT
from tools.markdown import format_table
from tools.marked_page import put_between_marks

PAGE = PROJECT / "docs" / "metrics.md"
OWN_MARKS = (
    "<!-- metrics: written by `make docs` from controller/health.py -->",
    "<!-- end of the controller's metrics -->",
)
MARKS = ("<!-- metrics: written by `make docs` from fleet/metrics.py -->", "<!-- end of metrics -->")


def describe_labels(family: MetricFamily) -> str:
    """Return the labels of a metric; those of fixed words with all of them, but for faults, which have a table."""
    values: dict[str, list[str]] = {}
    for labels, _ in family.samples:
        for name, value in labels.items():
            values.setdefault(name, []).append(value)
    parts = []
    for name, known in values.items():
        is_open = name in {"cluster", "job"} or set(known) == {str(one) for one in Fault}
        parts.append(f"`{name}`" if is_open else f"`{name}`: {', '.join(f'`{one}`' for one in dict.fromkeys(known))}")
    return "; ".join(parts)


def update_page(page: str) -> str:
    """Return the page with its tables replaced: the metrics of a fleet of one job, and those of a controller."""
    clusters = (ClusterStatus("prod", "dry-run", "", None, None, None),)
    window = LoadFact(0.0, 300.0, None, None, None, None, None)
    job = JobStatus("prod", "orders", "dry-run", "", None, None, None, "", "", None, window=window)
    families = list_families(FleetStatus(0.0, clusters, (job,)))
    rows = ((f"`{one.name}`", one.meaning, describe_labels(one)) for one in families)
    page = put_between_marks(page, MARKS, f"\n{format_table(('metric', 'meaning', 'labels'), rows)}\n")
    own = ((f"`{name}`", meaning, kind) for name, meaning, kind in list_own_metrics())
    return put_between_marks(page, OWN_MARKS, f"\n{format_table(('metric', 'meaning', 'kind'), own)}\n")


def list_own_metrics() -> list[tuple[str, str, str]]:
    """Return name, meaning and kind of what a controller's process counts, but for those of every process."""
    families = ControllerHealth(float, 0.0).registry.collect()
    return [(one.name, one.documentation, one.type) for one in families if one.name.startswith(PREFIX)]


def main(argv: Sequence[str]) -> int:
    """Write the page; returns the exit code."""
    CommandParser(prog="metrics_doc", description=__doc__).parse_args(argv)
    write_text(PAGE, update_page(PAGE.read_text()))
    print(f"written: {PAGE.relative_to(PROJECT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
