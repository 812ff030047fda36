"""How long a poll of a fleet takes: ``python -m benchmarks.pipeline.collection``.

Clusters in another process answer at once; beside them one answers slowly, one accepts connections and never replies,
and one does not exist.  Printed is, for each round, when the last healthy cluster had all its replies, counted from the
round's beginning.
"""

from __future__ import annotations

import argparse
import logging
import resource
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measurement import Measurement
from benchmarks.pipeline.fake_clusters import FakeCluster, serve
from include.flink.raw_format import RawRecord
from include.metric_sources.collection import collect_for
from include.settings import Cluster, Paths, Settings


def measure(work: Path, clusters: int, jobs: int, operators: int, *, rounds: int, every_s: float) -> list[float]:
    """Return for each round the seconds until the last healthy cluster was polled; raw files go below ``work``.

    Raises:
        RuntimeError: a healthy cluster lost replies or a round.
    """
    ended_s: dict[str, list[float]] = defaultdict(list)
    counts: dict[str, list[int]] = defaultdict(list)
    lock = threading.Lock()
    fakes = [FakeCluster(jobs, operators)] * clusters
    fakes += [FakeCluster(jobs, operators, delay_s=1.0), FakeCluster(jobs, operators, delay_s=float("inf"))]
    with serve(fakes) as urls:
        names = [*(f"healthy-{number}" for number in range(clusters)), "slow", "silent", "absent"]
        settings = Settings(
            paths=Paths(raw=str(work / "raw")),
            clusters={
                name: Cluster(rest_url=url, poll_every_s=every_s, window_s=300)
                for name, url in zip(names, [*urls, "http://127.0.0.1:9"], strict=True)
            },
        )
        began_s = time.monotonic()

        def take(cluster: str, records: Sequence[RawRecord]) -> None:
            with lock:
                ended_s[cluster].append(time.monotonic() - began_s)
                counts[cluster].append(len(records))

        collect_for(settings, every_s * (rounds - 1) + 0.5 * every_s, on_records=take, grace_s=5.0)
    healthy = names[:clusters]
    wanted = [1 + jobs * ((5 if number == 0 else 4) + operators) for number in range(rounds)]  # the plan comes once
    for name in healthy:
        if counts[name] != wanted:
            raise RuntimeError(f"{name}: {counts[name]} replies, not {wanted}")
    return [max(ended_s[name][number] for name in healthy) - number * every_s for number in range(rounds)]


def run(work: Path) -> list[Measurement]:
    """Measure the fleet of the goal, 20 clusters x 50 jobs x 8 operators within 60 s."""
    logging.disable(logging.CRITICAL)  # the dead clusters' lines
    try:
        first, steady = measure(work, 20, 50, 8, rounds=2, every_s=60.0)
    finally:
        logging.disable(logging.NOTSET)
    fleet = "of 20 clusters x 50 jobs x 8 operators"
    return [
        Measurement(f"first poll {fleet}", first, "s", 60.0, 60.0 / first),
        Measurement(f"later poll {fleet}", steady, "s", 60.0, 60.0 / steady),
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=50, help="of a cluster")
    parser.add_argument("--operators", type=int, default=8, help="of a job")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--every-s", type=float, default=60.0)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # the dead clusters' lines
    with tempfile.TemporaryDirectory(prefix="tidewise-collection-") as work:
        rounds = measure(
            Path(work),
            options.clusters,
            options.jobs,
            options.operators,
            rounds=options.rounds,
            every_s=options.every_s,
        )
    for number, seconds in enumerate(rounds, 1):
        print(f"round {number}: the last of {options.clusters} healthy clusters was polled after {seconds:.1f} s")
    own = resource.getrusage(resource.RUSAGE_SELF)
    print(f"processor time {own.ru_utime + own.ru_stime:.1f} s, peak memory {own.ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
