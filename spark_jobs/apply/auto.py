"""Mode auto: judge against the live cluster, claim, send, confirm, record; and finish what a killed run began."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from include.control.step_guard import Refusal, added_slots, guard
from include.flink.client import FlinkClient, FlinkError
from include.settings import Settings
from spark_jobs.apply.cases import DueCase
from spark_jobs.apply.claims import Ledger, Row
from spark_jobs.apply.flink import Clock, Outcome, Seen, already_asked, confirm, look, send

POOL = 8
# A claim this much older than the time limit of confirming has lost its owner.
LEASE_MARGIN = timedelta(seconds=60)


@dataclass
class AutoApplier:
    """Applies the due steps of clusters in mode auto.

    Attributes:
        settings: of the run.
        ledger: the table of applied steps.
        clock: the stage's time.
    """

    settings: Settings
    ledger: Ledger
    clock: Clock
    _clients: dict[str, FlinkClient] = field(default_factory=dict)

    def apply(self, cases: Sequence[DueCase]) -> list[str]:
        """Return what became of each step: a status, or ``waiting`` for one that the next run has to deal with."""
        with ThreadPoolExecutor(POOL) as pool:
            seen = list(pool.map(self._look, cases))
            accept_plan, told = self._judge(list(zip(cases, seen, strict=True)))
            mine = [case for case in accept_plan if self._own(case)]
            results = list(pool.map(self._carry_out, mine))
        self.ledger.settle([row for row in results if row["status"] != "claimed"])
        told += ["waiting" if row["status"] == "claimed" else str(row["status"]) for row in results]
        return told + ["waiting"] * (len(accept_plan) - len(mine))

    def _client(self, cluster: str) -> FlinkClient | None:
        url = self.settings.cluster(cluster).rest_url
        if url is None:
            return None
        return self._clients.setdefault(cluster, FlinkClient(url))

    def _look(self, case: DueCase) -> Seen | None:
        """Ask the cluster; None when it does not reply or has no address."""
        client = self._client(case.step.cluster)
        try:
            return look(client, case.step.job_id) if client else None
        except FlinkError:
            return None

    def _judge(self, cases: Sequence[tuple[DueCase, Seen | None]]) -> tuple[list[DueCase], list[str]]:
        """Return the steps to carry out, and what became of the others, which are recorded.

        Steps of one cluster share its free slots: what one takes, the next does not have.
        """
        taken: dict[str, int] = defaultdict(int)
        accept_plan: list[DueCase] = []
        refused: list[Row] = []
        told: list[str] = []
        for case, seen in cases:
            if case.claimed_at is not None:
                accept_plan.append(case)
                continue
            reachable = self._client(case.step.cluster) is not None
            if seen is None and reachable:
                told.append("waiting")
                continue
            now, at_hand = self.clock(), seen or Seen({}, None)
            free = None if at_hand.free_slots is None else at_hand.free_slots - taken[case.step.cluster]
            around = case.surroundings(
                now, self.settings, running=at_hand.running, free_slots=free, restarting=at_hand.restarting
            )
            verdict = guard(case.step, around, self.settings)
            if verdict is None:
                taken[case.step.cluster] += max(added_slots(case.step, around), 0)
                accept_plan.append(case)
            else:
                refused.append(case.outcome_row(Outcome("refused", verdict[1]), now, str(verdict[0])))
                told.append("refused")
        self.ledger.record(refused)
        return accept_plan, told

    def _own(self, case: DueCase) -> bool:
        """Claim a step, or take over a claim whose owner is gone; whether it is ours now."""
        now = self.clock()
        row = case.outcome_row(Outcome("claimed", "claimed; no outcome yet"), now)
        if case.claimed_at is None:
            return self.ledger.claim(row)
        lease = timedelta(seconds=self.settings.apply.confirm_timeout_s) + LEASE_MARGIN
        return now - case.claimed_at > lease and self.ledger.take_over(row, case.claimed_at)

    def _carry_out(self, case: DueCase) -> Row:
        decided_at = self.clock()
        client = self._client(case.step.cluster)
        if client is None:
            outcome = Outcome("failed", f"claimed, but clusters.{case.step.cluster}.rest_url is gone")
        elif case.claimed_at is None:
            outcome = send(client, case.step, self.settings.apply, self.clock)
        else:
            outcome = self._finish(client, case, decided_at)
        return case.outcome_row(outcome, decided_at)

    def _finish(self, client: FlinkClient, case: DueCase, now: datetime) -> Outcome:
        """Finish a claim that was left without an outcome: what Flink was asked for tells whether it was sent."""
        step, options = case.step, self.settings.apply
        try:
            if already_asked(client, step):
                return confirm(client, step, options, self.clock)
        except FlinkError as error:
            return Outcome("claimed", f"the cluster cannot be asked: {error}")
        why_not = self._not_to_be_sent(case, now)
        return Outcome("failed", why_not) if why_not else send(client, step, options, self.clock)

    def _not_to_be_sent(self, case: DueCase, now: datetime) -> str | None:
        """Return why an unsent claim is given up, None when it may still be sent."""
        reasons: dict[str, Callable[[], bool]] = {
            "a newer plan has taken over": lambda: case.step.superseded,
            "mode auto was switched off": lambda: case.mode != "auto",
            str(Refusal.EXPIRED): lambda: now > case.step.valid_until,
        }
        found = [reason for reason, holds in reasons.items() if holds()]
        return f"claimed and never sent: {', '.join(found)}" if found else None
