"""Registered models as a person reads them: a list, one version, the difference of two."""

from __future__ import annotations

from datetime import UTC, date, datetime

from cli.known_jobs import name_near
from cli.printing import plain_note
from include.lake_table import LakeTable, is_in
from include.model_registry import CHALLENGER, CHAMPION, PINNED
from include.tables import MODEL_JOBS, MODEL_VERSIONS
from models.bundle.job_models import CapacityCurve
from models.scheduling.figures import format_count, format_rate
from models.training.gate import Verdict
from models.training.model_review import PINNED_TAG, REJECTED_TAG, VERSION_TAG, ReviewedVersion
from spark_jobs.model_acts import REVIEW_TAG, ActResult, ModelReview, ReviewRefusedError
from spark_jobs.model_store import GATE_TAG, NOTE_TAG, ModelStore
from spark_jobs.train.changes import describe_bundles, list_capacity_changes

SHOWN = 30
_Z = 1.2816  # of an interval of 80%
ALIASES = (CHAMPION, CHALLENGER, PINNED)


def list_lines(store: ModelStore) -> list[str]:
    """Return a line for each of the newest versions, and what cannot be followed."""
    versions, champion = store.list_reviewed(), store.read_champion()
    if not versions:
        return ["no model is registered yet: run the train stage (DAG tidewise_train)"]
    numbers = {alias: store.find_number(alias) for alias in ALIASES}
    lines = ["version  model             gate      marks"]
    for one in versions[::-1][:SHOWN]:
        gate = store.read_run(one.number).data.tags.get(GATE_TAG, "-") if one.is_ours else "-"
        marks = [alias for alias, number in numbers.items() if number == one.number] + _say(one)
        model = one.tags.get(VERSION_TAG, "not of this project")
        lines.append(f"{one.number:7}  {model:16}  {gate:8}  {'; '.join(marks)}".rstrip())
    review, _ = store.read_orders(champion.registered)
    lines += [f"no training changes the champion: {review.hold}"] if review.hold else []
    return [
        *lines,
        *(f"not followed: {one}" for one in dict.fromkeys((*champion.problems, *champion.lost, *review.problems))),
    ]


def _say(one: ReviewedVersion) -> list[str]:
    marks = {"rejected": REJECTED_TAG, "pinned": PINNED_TAG}
    result = [f"{word}: {one.tags[tag]}" for word, tag in marks.items() if one.tags.get(tag)]
    return result + ([one.tags[REVIEW_TAG]] if REVIEW_TAG in one.tags else [])


def describe_version(store: ModelStore, name: str | None = None) -> list[str]:
    """Return what a version is, by default the champion: its description, and jobs without models of its own."""
    champion = store.read_champion().registered
    if name is None and champion is None:
        raise ReviewRefusedError("there is no champion; see tidewise models list")
    one = ModelReview(store, "", "").find(name or str(champion.number if champion else 0))
    run, bundle = store.read_run(one.number), store.read_number(one.number)
    others = {job: version for job, version in bundle.versions_of_jobs().items() if version != bundle.model_version}
    lines = [
        f"version {one.number}, model {bundle.model_version}, {format_count(len(bundle.index), 'job')}",
        *_say(one),
    ]
    lines += [f"{'/'.join(job)} has models of {version}" for job, version in sorted(others.items())]
    details = {(row["cluster"], row["job"]): row for row in store.read_judged(run)}
    lines += [
        f"{'/'.join(map(str, job))}: {row['models']}, {row['detail']}" for job, row in details.items() if row["detail"]
    ]
    return [*lines, "", *plain_note(run.data.tags.get(NOTE_TAG, ""))]


def describe_operator(store: ModelStore, job: str, operator: str | None = None) -> list[str]:
    """Return what the champion's models say of a job (``cluster/job``): its operators, or the curve of one."""
    champion = store.read_champion()
    if champion.registered is None or champion.bundle is None:
        raise ReviewRefusedError("there is no champion; see tidewise models list")
    cluster, _, name = job.partition("/")
    bundle, known = champion.bundle, dict(champion.bundle.versions_of_jobs())
    _require(job, {"/".join(one) for one in known}, "job")
    models = bundle.for_job(cluster, name)
    if operator:
        _require(operator, set(models.selectivity), "operator")
    lines = [f"version {champion.registered.number}, models of {known[cluster, name]}"]
    for one in [operator] if operator else sorted(models.selectivity):
        curve = models.capacity.get(one)
        lines += ["", one, *(describe_curve(curve) if curve else ["its capacity was never measured"])]
    return lines


def _require(name: str, known: set[str], what: str) -> None:
    if name not in known:
        raise ReviewRefusedError(f"the champion knows no {what} {name!r}; {name_near(name, known)}")


def describe_curve(curve: CapacityCurve) -> list[str]:
    """Return the capacity where it was measured, and at the next parallelism, with intervals of 80%."""
    shown = [*curve.observed.tolist(), int(curve.observed.max(initial=0)) + 1]
    measured = dict(zip(curve.observed.tolist(), curve.observed_per_s.tolist(), strict=True))
    lines = ["parallelism  expected/s  80% interval             measured/s"]
    for at in (one for one in shown if one <= len(curve.parallelism)):
        mean, half = float(curve.mean_per_s[at - 1]), _Z * float(curve.sd_per_s[at - 1])
        band = f"{format_rate(max(mean - half, 0.0))} to {format_rate(mean + half)}"
        lines.append(
            f"{at:11}  {format_rate(mean):>10}  {band:23}  {format_rate(measured[at]) if at in measured else '-'}"
        )
    return lines


def describe_difference(store: ModelStore, name: str, other: str | None = None) -> list[str]:
    """Return what differs between a version and another, by default the champion."""
    champion = store.read_champion().registered
    if other is None and champion is None:
        raise ReviewRefusedError("there is no champion to compare with; name two versions")
    acts = ModelReview(store, "", "")
    new, old = acts.find(name), acts.find(other or str(champion.number if champion else 0))
    ours, theirs = store.read_number(new.number), store.read_number(old.number)
    head = [f"version {new.number} ({ours.model_version}) beside version {old.number} ({theirs.model_version})"]
    return [*head, *describe_bundles(ours, theirs), *list_capacity_changes(ours, theirs)]


def write_made(lake: str, done: ActResult, at: datetime) -> None:
    """Write the rows of a version that a person's act has made, as a training writes its own."""
    made = done.made
    if made is None or done.champion is None:
        return
    columns = [name for name in MODEL_VERSIONS.columns if name != "as_of"]
    known = LakeTable(lake, MODEL_VERSIONS)
    rows = known.read(["as_of", *columns], date.min, date.max, is_in("model_version", [done.base])).to_pylist()
    base = max(rows, key=lambda row: row["as_of"], default=dict.fromkeys(columns))
    own = {"as_of": at, "model_version": made.model_version, "jobs": len(made.index), "champion_before": done.base}
    known.append([base | own | {"gate": str(Verdict.REVIEWED), "gate_detail": done.detail}])
    same = {"as_of": at, "model_version": made.model_version, "date": at.astimezone(UTC).date(), "detail": None}
    LakeTable(lake, MODEL_JOBS).append([same | one for one in made.describe_jobs()])
