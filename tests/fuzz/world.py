"""A raw root full of mutated lines and files, and what is known of every line in it."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from include.flink.raw_format import hour_directory
from include.raw_files import show_name
from include.utc import floor_hour
from tests.fuzz.file_mutations import PACKINGS, STEMS, put_beside
from tests.fuzz.fleet import HOURS, POLL_S, FleetJob
from tests.fuzz.line_mutations import MUTATIONS
from tests.spark.raw_builders import utc

START = utc("2026-11-20T10:00")
END = START + timedelta(hours=HOURS)
SOUND = "sound"
"""The cluster of which no line is changed."""
_LINES_OF_JOB = HOURS * (1 + 3600 // POLL_S * 7)
_MUTATED_SHARE = 0.6
_LINES_OF_FILE = 400
_OWN_TIME_MS = 500  # mutated lines are observed a little later, so that none has the key of another line


@dataclass(frozen=True)
class Line:
    """One line that was written; ``mutation`` is empty for one that is as it was polled."""

    content: bytes
    mutation: str = ""


@dataclass
class World:
    """Everything that was written.

    Attributes:
        lines: name of the file -> its lines, in order; of files whose every line can be read.
        damaged: name of the file -> how it was packed; of the others.
        jobs: all jobs.
        mutated: how many lines were changed.
    """

    raw: Path
    lines: dict[str, list[Line]] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)
    jobs: list[FleetJob] = field(default_factory=list)
    mutated: int = 0


def write_world(raw: Path, wanted: int, seed: int) -> World:
    """Write about ``wanted`` mutated lines, and what goes with them, below a raw root."""
    random_, world = random.Random(seed), World(raw)
    jobs = max(2, round(wanted / (_LINES_OF_JOB * _MUTATED_SHARE)))
    clusters = [f"c{number}" for number in range(max(2, min(12, jobs // 4)))]
    world.jobs = [FleetJob(clusters[number % len(clusters)], number, START) for number in range(jobs)]
    world.jobs += [FleetJob(SOUND, jobs + number, START) for number in range(2)]
    by_hour: dict[tuple[str, datetime], list[Line]] = defaultdict(list)
    for job in world.jobs:
        for at, text in job.lines():
            line = Line(text.encode())
            if job.cluster != SOUND and random_.random() < _MUTATED_SHARE:
                line = _mutate(random_, text)
                world.mutated += 1
            by_hour[job.cluster, floor_hour(at)].append(line)
            if line.mutation and random_.random() < 0.02:
                by_hour[job.cluster, floor_hour(at)].append(Line(line.content, "line: twice"))
    for (cluster, hour), lines in by_hour.items():
        _write_hour(random_, world, cluster, hour, lines)
    for number, cluster in enumerate(clusters):
        put_beside(random.Random(seed + number), hour_directory(raw, cluster, START))
    return world


def _mutate(random_: random.Random, text: str) -> Line:
    name = random_.choice(list(MUTATIONS))
    at, _, rest = text.removeprefix('{"observed_at_ms":').partition(",")
    late = f'{{"observed_at_ms":{int(at) + _OWN_TIME_MS},{rest}'
    content = MUTATIONS[name](random_, late)
    assert b"\n" not in content, name
    return Line(content, name)


def _write_hour(random_: random.Random, world: World, cluster: str, hour: datetime, lines: list[Line]) -> None:
    folder = hour_directory(world.raw, cluster, hour)
    folder.mkdir(parents=True)
    for number, first in enumerate(range(0, len(lines), _LINES_OF_FILE)):
        some = lines[first : first + _LINES_OF_FILE]
        sound = [name for name, packing in PACKINGS.items() if packing.is_sound]
        chosen = "file: gzip" if cluster == SOUND else random_.choice(sound)
        _write_file(random_, world, folder, number, chosen, some)
    if cluster == SOUND:
        return
    # Damaged files hold lines of their own, which nothing is expected of but that they are counted.
    chosen = random_.choice([name for name, packing in PACKINGS.items() if not packing.is_sound])
    again = [Line(_later(line, number)) for number, line in enumerate(lines[:50]) if not line.mutation]
    _write_file(random_, world, folder, 999, chosen, again)


def _later(line: Line, number: int) -> bytes:
    at, _, rest = line.content.removeprefix(b'{"observed_at_ms":').partition(b",")
    return b'{"observed_at_ms":%d,%s' % (int(at) + 1_000 + number, rest)


def _write_file(
    random_: random.Random, world: World, folder: Path, number: int, packing: str, lines: list[Line]
) -> None:
    chosen = PACKINGS[packing]
    stem = os.fsdecode(random_.choice(STEMS))
    path = folder / f"{stem}{number}{chosen.suffix}"
    path.write_bytes(chosen.pack(random_, b"".join(line.content + b"\n" for line in lines)))
    name = show_name(str(path.relative_to(world.raw)))
    if chosen.is_sound:
        world.lines[name] = lines
    else:
        world.damaged[name] = packing
