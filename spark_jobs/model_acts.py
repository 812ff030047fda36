"""What persons do to registered models: approve, reject, pin, lift, roll back; and the version that follows from it.

Everything is a tag or an alias of MLflow's registry, so that its own pages show it, and may set it as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from include.model_registry import PINNED
from models.bundle.fleet_bundle import FleetBundle, JobKey
from models.bundle.merging import merge_jobs
from models.scheduling.figures import format_count
from models.training.gate import Verdict
from models.training.model_review import (
    PINNED_TAG,
    PROMOTED_TAG,
    REJECTED_TAG,
    VERSION_TAG,
    ReviewedVersion,
    ReviewOrders,
    name_missing,
    read_names,
    write_names,
)
from spark_jobs.model_store import GATE_TAG, NOTE_TAG, ModelStore

REVIEW_TAG = "tidewise.review"  # the last act on a version, who and when, for MLflow's pages


class ReviewRefusedError(ValueError):
    """What was asked for cannot be done; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class ActResult:
    """What an act has led to.

    Attributes:
        detail: one sentence for a person.
        champion: the version that plans use now; None without one.
        made: a version that was made for it, with its models; None where none was needed.
        base: model version from which it was made.
    """

    detail: str
    champion: ReviewedVersion | None
    made: FleetBundle | None = None
    base: str = ""


class ModelReview:
    """Acts of one person at one moment; who, when and why, in their words, are tags."""

    def __init__(self, store: ModelStore, by: str, at: str, reason: str = "") -> None:
        self._store, self._by, self._at, self._reason = store, by, at, reason

    def find(self, name: str) -> ReviewedVersion:
        """Return a version by its number, or by its model version.

        Raises:
            ReviewRefusedError: there is no such version of this project.
        """
        known = {one.number: one for one in self._store.list_reviewed()}
        named = [one for one in known.values() if one.model_version == name]
        one = max(named, key=lambda each: each.number) if named else known.get(int(name)) if name.isdecimal() else None
        if one is None:
            raise ReviewRefusedError(name_missing(name, known))
        if not one.is_ours:
            raise ReviewRefusedError(f"version {name} is not of this project's trainings: it has no tag {VERSION_TAG}")
        return one

    def approve(self, name: str) -> ActResult:
        """Let plans use a version from now on, whatever the gate says; its own rejection is lifted."""
        one = self._usable(name)
        self._refuse_pinned(one.number)
        self._write(one, REJECTED_TAG, is_whole=False)
        self._store.make_champion(one, self._at)
        return self._settle(one, "approved", f"version {one.number} is champion")

    def reject(self, name: str, jobs: Sequence[JobKey] = ()) -> ActResult:
        """Keep a version, or its models of single jobs, out of use until somebody lifts it."""
        one = self.find(name)
        if not jobs:
            self._refuse_pinned(None)
        champion = self._store.read_champion().registered
        if not jobs and champion is not None and champion.number == one.number:
            self._find_before(one.number)
        self._refuse_unknown(one, jobs)
        self._write(one, REJECTED_TAG, is_whole=True if not jobs else None, add=jobs)
        what = f"models of {_names(jobs)} in version {one.number}" if jobs else f"version {one.number}"
        return self._settle(one, "rejected", f"{what} rejected until lifted")

    def pin(self, name: str, jobs: Sequence[JobKey] = ()) -> ActResult:
        """Let a version stay champion, or its models of single jobs stay in every later one, until lifted."""
        one = self._usable(name)
        self._refuse_unknown(one, jobs)
        if not jobs:
            if _is_rejected(one):
                raise ReviewRefusedError(f"version {one.number} is rejected; lift that first")
            self._store.point(PINNED, one)
            self._store.make_champion(one, self._at)
            return self._settle(one, "pinned", f"version {one.number} stays champion until lifted")
        for other in self._store.list_reviewed():  # a job is pinned to one version
            self._write(other, PINNED_TAG, remove=jobs)
        self._write(self.find(name), PINNED_TAG, add=jobs)
        return self._settle(one, "pinned", f"{_names(jobs)} keeps its models of version {one.number} until lifted")

    def lift(self, name: str, jobs: Sequence[JobKey] = ()) -> ActResult:
        """Take away what was said of a version, or of its models of single jobs."""
        one = self.find(name)
        if jobs:
            for tag in (REJECTED_TAG, PINNED_TAG):
                self._write(one, tag, remove=jobs)
            return self._settle(one, "lifted", f"what was said of {_names(jobs)} in version {one.number} is lifted")
        if self._store.find_number(PINNED) == one.number:
            self._store.drop_alias(PINNED)
        for tag in (REJECTED_TAG, PINNED_TAG):
            self._write(one, tag, is_whole=False)
        champion = self._store.read_champion().registered
        if champion is not None and champion.number < one.number:
            self._store.set_tag(
                one.number, PROMOTED_TAG, ""
            )  # else somebody would still seem to have gone back from it
        return self._settle(one, "lifted", f"what was said of version {one.number} is lifted")

    def roll_back(self, name: str | None = None) -> ActResult:
        """Go back to a version, by default the champion before; the one in use is rejected."""
        champion = self._store.read_champion().registered
        if champion is None:
            raise ReviewRefusedError("there is no champion to go back from")
        to = self._usable(name) if name else self._find_before(champion.number)
        if to.number >= champion.number:
            raise ReviewRefusedError(
                f"version {to.number} is not older than the champion, {champion.number}: approve it"
            )
        self._refuse_pinned(to.number)
        self._write(self.find(str(champion.number)), REJECTED_TAG, is_whole=True)
        self._write(to, REJECTED_TAG, is_whole=False)
        self._store.make_champion(to, self._at)
        return self._settle(to, "rolled back to", f"back from version {champion.number} to {to.number} until lifted")

    def _usable(self, name: str) -> ReviewedVersion:
        one = self.find(name)
        try:
            self._store.read_number(one.number)
        except Exception as error:  # whatever is in its file, or is not there
            reported = str(error).partition("\n")[0] or type(error).__name__
            raise ReviewRefusedError(f"version {one.number} cannot be used: {reported}") from error
        return one

    def _find_before(self, number: int) -> ReviewedVersion:
        known = [one for one in self._store.list_reviewed() if one.is_ours and one.was_champion and one.number < number]
        usable = [one for one in known if not _is_rejected(one)]
        if not usable:
            raise ReviewRefusedError(f"no version before {number} was champion: approve another one first")
        return usable[-1]

    def _refuse_pinned(self, number: int | None) -> None:
        review = self._store.read_review(self._store.read_champion().registered)
        if review.pinned is not None and review.pinned != number:
            raise ReviewRefusedError(f"version {review.pinned} is pinned; lift that first")

    def _refuse_unknown(self, one: ReviewedVersion, jobs: Sequence[JobKey]) -> None:
        known = set(self._store.read_number(one.number).jobs()) if jobs else set()
        if unknown := [job for job in jobs if job not in known]:
            raise ReviewRefusedError(f"version {one.number} has no models of {_names(unknown)}")

    def _write(
        self,
        one: ReviewedVersion,
        tag: str,
        *,
        is_whole: bool | None = None,
        add: Sequence[JobKey] = (),
        remove: Sequence[JobKey] = (),
    ) -> None:
        """Change what a tag names; ``is_whole`` None: as it is."""
        before = one.tags.get(tag, "")
        was_whole, named, _ = read_names(before)
        value = write_names(was_whole if is_whole is None else is_whole, ({*named} | {*add}) - {*remove})
        if value != before:
            self._store.set_tag(one.number, tag, value)

    def _settle(self, one: ReviewedVersion, verb: str, detail: str) -> ActResult:
        """Let the champion be what is said now, with a version made for it where single jobs have other models."""
        why = f": {self._reason}" if self._reason else ""
        self._store.set_tag(one.number, REVIEW_TAG, f"{verb} by {self._by}, {self._at}{why}")
        champion = self._store.read_champion()
        if champion.registered is None or champion.bundle is None:
            return ActResult(detail, None)
        self._store.keep_champion(champion.registered, self._at)
        sources = _find_sources(champion.bundle, *self._store.read_orders(champion.registered))
        if not sources:
            return ActResult(detail, champion.registered)
        made = merge_jobs(champion.bundle, sources)
        chosen = {"/".join(job): None if one is None else one.model_version for job, one in sources.items()}
        content = [champion.registered.model_version, sorted(chosen.items())]
        version = _hash(content)
        if any(known.model_version == version and _is_rejected(known) for known in self._store.list_reviewed()):
            version = _hash([*content, self._at])  # the same again, of a later wish
        made = made.renamed(version)
        registered = self._register(
            made, f"{detail}; {format_count(len(sources), 'job')} of version {champion.registered.number}"
        )
        self._store.make_champion(registered, self._at)
        text = f"{detail}; version {registered.number} was made for it and is champion"
        return ActResult(text, registered, made, champion.registered.model_version)

    def _register(self, made: FleetBundle, note: str) -> ReviewedVersion:
        done = self._store.find_finished(made.model_version)
        if done is None:
            text = f"{note}; by {self._by}, {self._at}."
            with self._store.run(made.model_version, {NOTE_TAG: text, GATE_TAG: str(Verdict.REVIEWED)}):
                self._store.log_bundle(made)
            done = self._store.find_finished(made.model_version)
        if done is None:
            raise ReviewRefusedError(f"MLflow does not show the run of {made.model_version} as finished; do it again")
        return self._store.register(done)


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _is_rejected(one: ReviewedVersion) -> bool:
    return read_names(one.tags.get(REJECTED_TAG, ""))[0]


def _find_sources(
    bundle: FleetBundle, review: ReviewOrders, bundles: Mapping[int, FleetBundle]
) -> dict[JobKey, FleetBundle | None]:
    """Return the bundles of jobs whose models in use are not those that they shall have."""
    result, present = dict[JobKey, FleetBundle | None](), bundle.versions_of_jobs()
    for job, (number, _) in review.orders.items():
        source = None if number is None else bundles[number]
        wanted = None if source is None else source.versions_of_jobs()[job]
        if job in present and present[job] != wanted:
            result[job] = source
    return result


def _names(jobs: Sequence[JobKey]) -> str:
    return ", ".join("/".join(job) for job in jobs)
