"""The facts of a fleet, read from its lake; what has not changed since the last time is not read again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from deltalake.exceptions import DeltaError

from fleet.decisions import count_troubles, decision_of
from fleet.disks import read_free_shares
from fleet.facts import ClusterStatus, DecisionFact, FleetStatus, HoldFact, JobStatus, ModelFacts, StepFact
from fleet.health import (
    judge_cluster,
    judge_disks,
    judge_jobs,
    judge_models,
    judge_raw_folder,
    judge_stages,
    judge_tables,
    leave_at_rest,
)
from fleet.holds import covers, list_fixed_holds, list_holds_after_changes, list_holds_of_persons
from fleet.leases import read_leases
from fleet.loads import load_of
from fleet.log_tables import KEYS, JobKey, LastRows, LogTables, Row
from fleet.lost_tables import UnreadableTable, find_lost_tables
from fleet.plans import list_steps, select_steps
from fleet.recent_tables import RecentTables
from fleet.small_tables import SmallTables
from fleet.waiting import Block, list_blocks, list_waiting
from include.control.approvals import ApprovalStore
from include.control.holds import HoldStore
from include.control.lifted_blocks import LiftedBlock, LiftedBlockStore
from include.control.pins import PersonalPin, PinStore
from include.control.small_objects import StoreUnreadableError
from include.control.undo_orders import UndoStore
from include.flink.job_states import RUNNING
from include.lake_table import timestamp_of
from include.live_windows import LiveCluster
from include.place import place
from include.settings import Settings
from include.stage_states import StageState, StageStates
from include.tables.plan_row import PlanRow
from include.utc import DAY_S

LIVE_S = 3600.0
"""A window that ended longer ago is no longer the last one that the controller has polled."""


class FleetReader:
    """Reads what people ask of one lake; the variables of the environment may hold everything."""

    def __init__(self, settings: Settings, variables: Mapping[str, str]) -> None:
        lake = settings.paths.lake
        self.settings, self._variables = settings, variables
        self.log, self.tables, self.recent = LogTables(lake), SmallTables(lake), RecentTables(lake)
        self._holds, self._undos = HoldStore(lake), UndoStore(lake)
        self._decisions: dict[tuple[Any, ...], DecisionFact] = {}
        self._decided: tuple[LastRows, dict[JobKey, DecisionFact], dict[JobKey, DecisionFact]] | None = None
        self._modes: dict[JobKey, str] = {}
        self._plans: Mapping[JobKey, tuple[PlanRow, ...]] = {}
        self._steps: dict[JobKey, tuple[StepFact, ...]] = {}
        self._stages = StageStates(lake)
        self._approvals, self._lifted, self._pins = ApprovalStore(lake), LiftedBlockStore(lake), PinStore(lake)

    def read(self, now_s: float) -> FleetStatus:
        """Return the fleet at a time, epoch seconds.

        Raises:
            DeltaError, OSError: a table cannot be read; lost ones are named.
        """
        try:
            return self._read(now_s)
        except (DeltaError, OSError) as error:
            lost = self.find_lost_tables()
            if not lost:
                raise
            raise DeltaError("; ".join(map(str, lost))) from error

    def _read(self, now_s: float) -> FleetStatus:
        settings = self.settings
        light = self.log.read_light(now_s)
        last = self.log.read_whole_of(*self.log.read_newest(now_s))
        refused, taken_back = count_troubles(light, now_s)
        plans = self.tables.read_plans(now_s)
        if plans is not self._plans:  # facts of what was read before are the same
            self._plans, self._steps = plans, {key: list_steps(rows) for key, rows in plans.items()}
        newest, sent = self._decide(last)
        lifted = [(one.cluster, one.job, one.block_id) for one in self._lifted.read()]
        holds = self._list_holds(last.newest, lifted, now_s)
        waiting = list_waiting(last.newest, settings, now_s, self._approvals.read(now_s), lifted)
        jobs, keys = [], sorted({*last.newest, *plans})
        # Settings do not change while a reader lives.
        self._modes = {key: self._modes.get(key) or settings.mode_of(*key) for key in keys}
        for key in keys:
            jobs.append(
                replace(
                    self._form_job(key, newest.get(key), plans.get(key, ()), now_s),
                    last_rescale=sent.get(key),
                    holds=tuple(one for one in holds if covers(one, *key)),
                    waiting=waiting.get(key, ()),
                    refusals=refused.get(key, 0),
                    roll_backs=taken_back.get(key, 0),
                )
            )
        live = self.recent.read_live()
        jobs = self._add_polled(jobs, live, now_s)
        clusters = self._clusters_of({cluster for cluster, _ in {*last.newest, *plans}}, plans, live, now_s)
        models = _models_of([row for row in self.tables.read_models() if row["as_of"].timestamp() <= now_s])
        raw, stages = settings.paths.raw, self._read_stages()
        health = [
            *judge_tables(find_lost_tables(settings.paths.lake, stages)),
            *(fact for one in clusters for fact in judge_cluster(one, settings.health, now_s)),
            *judge_models(models, settings.health, now_s),
            judge_raw_folder(raw, place(raw).is_dir()),
            *judge_stages(stages, now_s),
            *judge_disks(read_free_shares(settings.paths), settings.health),
            *judge_jobs(jobs, holds, settings.health, now_s),
        ]
        if not settings.clusters:
            health = leave_at_rest(health)
        return FleetStatus(now_s, tuple(clusters), tuple(jobs), models, tuple(holds), tuple(health))

    def _add_polled(self, jobs: Sequence[JobStatus], live: Mapping[str, LiveCluster], now_s: float) -> list[JobStatus]:
        """Return the jobs with what the controller has polled of them since it last wrote."""
        windows = self.recent.select_live_loads(live, timestamp_of(now_s - LIVE_S), timestamp_of(now_s)).read_last()
        result = []
        for job in jobs:
            key, cluster = (job.cluster, job.job), live.get(job.cluster)
            polled = None if cluster is None else cluster.jobs.get(job.job)
            decided_s = job.last_decision.at_s if job.last_decision is not None else 0.0
            state = polled.state if polled is not None and decided_s <= polled.polled_at_s <= now_s else job.state
            result.append(replace(job, state=state, window=load_of(windows[key]) if key in windows else None))
        return result

    def find_lost_tables(self) -> list[UnreadableTable]:
        """Return the tables of the lake that are lost."""
        return find_lost_tables(self.settings.paths.lake, self._read_stages())

    def _read_stages(self) -> list[StageState]:
        """Return how the tasks ended; nothing where nobody knows, of which plans and metrics that get old tell."""
        try:
            return self._stages.read()
        except StoreUnreadableError:
            return []

    def _decide(self, last: LastRows) -> tuple[dict[JobKey, DecisionFact], dict[JobKey, DecisionFact]]:
        """Return the rows as facts; a row that was read before is not read again."""
        if self._decided is not None and self._decided[0] is last:
            return self._decided[1], self._decided[2]
        before, self._decisions = self._decisions, {}
        for row in (*last.newest.values(), *last.sent.values()):
            key = tuple(row[name] for name in KEYS)
            self._decisions[key] = before.get(key) or decision_of(row)
        newest, sent = (
            {key: self._decisions[tuple(row[name] for name in KEYS)] for key, row in rows.items()} for rows in last
        )
        self._decided = last, newest, sent
        return newest, sent

    def read_lifted(self) -> list[LiftedBlock]:
        """Return the blocks and suspensions that persons have lifted."""
        return self._lifted.read()

    def read_pins(self, now_s: float) -> Sequence[PersonalPin]:
        """Return the parallelism that persons demand of jobs at a time."""
        return self._pins.read(now_s).pins

    def read_holds(self, now_s: float) -> list[HoldFact]:
        """Return all holds in force; a log that cannot be read tells of none.

        Raises:
            StoreUnreadableError: the holds of persons cannot be read, so nothing is sent.
        """
        lifted = [(one.cluster, one.job, one.block_id) for one in self._lifted.read()]
        self._holds.read_named(now_s)
        return self._list_holds(self._read_last_rows(now_s), lifted, now_s)

    def read_blocks(self, now_s: float) -> list[Block]:
        """Return what is not tried of jobs at a time; a log that cannot be read tells of nothing."""
        lifted: dict[JobKey, list[str]] = {}
        for one in self._lifted.read():
            lifted.setdefault((one.cluster, one.job), []).append(one.block_id)
        rows = sorted(self._read_last_rows(now_s).items())
        return [block for key, row in rows for block in list_blocks(row, self.settings, lifted.get(key, ()), now_s)]

    def _read_last_rows(self, now_s: float) -> Mapping[JobKey, Row]:
        try:
            newest = self.log.read_newest(now_s).newest
            return self.log.read_whole_of(newest, newest[:0]).newest
        except (DeltaError, OSError):
            return {}

    def _list_holds(
        self, last: Mapping[JobKey, Row], lifted: list[tuple[str, str, str]], now_s: float
    ) -> list[HoldFact]:
        return [
            *list_fixed_holds(self.settings, self._variables),
            *list_holds_of_persons([*self._holds.read(now_s), *self._pins.read(now_s).holds], self._undos.read()),
            *list_holds_after_changes(last, lifted, now_s),
        ]

    def _clusters_of(
        self,
        known: Iterable[str],
        plans: Mapping[JobKey, tuple[PlanRow, ...]],
        live: Mapping[str, LiveCluster],
        now_s: float,
    ) -> list[ClusterStatus]:
        leases = read_leases(self.settings.paths.lake)
        quality = [row for row in self.tables.read_quality() if row["interval_end"].timestamp() <= now_s]
        planned: dict[str, float] = {}
        for (cluster, _), rows in plans.items():
            planned[cluster] = max(planned.get(cluster, 0.0), rows[0].as_of_s or 0.0)
        names = sorted({*known, *self.settings.clusters, *leases, *(row["cluster"] for row in quality)})
        coverage = self.tables.read_coverage(now_s)
        silent = {
            name: one.at_s - max(job.polled_at_s for job in one.jobs.values())
            for name, one in live.items()
            if one.jobs and one.at_s <= now_s
        }
        result = []
        for name in names:
            lease, mine = leases.get(name), [row for row in quality if row["cluster"] == name]
            until_s = max((row["interval_end"].timestamp() for row in mine if row["rows"]), default=None)
            lately = [row for row in mine if until_s is not None and row["interval_end"].timestamp() > until_s - DAY_S]
            result.append(
                ClusterStatus(
                    cluster=name,
                    mode=self.settings.mode_of(name),
                    controller="" if lease is None else lease.owner,
                    ticked_at_s=None if lease is None else lease.renewed_at_s,
                    plan_as_of_s=planned.get(name),
                    metrics_until_s=until_s,
                    lines=sum(row["rows"] or 0 for row in lately),
                    quarantined=sum(row["quarantined"] or 0 for row in lately),
                    quarantined_files=sum(row["quarantined_files"] or 0 for row in lately),
                    coverage_q90=coverage.get(name),
                    silent_s=silent.get(name),
                )
            )
        return result

    def _form_job(self, key: JobKey, decision: DecisionFact | None, plan: Sequence[PlanRow], now_s: float) -> JobStatus:
        """Return what the last decision and the newest plan say of a job."""
        first, steps = plan[0] if plan else None, select_steps(self._steps.get(key, ()), now_s)
        has_ended = first is not None and first.has_ended and not _runs_since(decision, first.as_of_s)
        slots_now = decision.slots_from if decision is not None else first.slots_from if first is not None else None
        return JobStatus(
            *key,
            mode=self._modes[key],
            state="" if decision is None else decision.state,
            slots_now=None if has_ended else slots_now,
            last_decision=decision,
            last_rescale=None,
            plan_status="" if first is None else "planned" if steps else first.status,
            plan_reason="" if first is None else first.reason,
            plan_as_of_s=None if first is None else first.as_of_s,
            steps=steps,
            has_ended=has_ended,
        )


def _models_of(trainings: list[dict[str, Any]]) -> ModelFacts:
    """Return the facts of trainings, in their order."""
    if not trainings:
        return ModelFacts()
    accepted = [row for row in trainings if row["gate"] in {"first", "passed", "reviewed"}]
    in_use, newest = (accepted or trainings)[-1], trainings[-1]
    return ModelFacts(
        trained_at_s=in_use["as_of"].timestamp() if accepted else None,
        version=in_use["model_version"] or "" if accepted else "",
        gate=newest["gate"] or "",
        gate_at_s=newest["as_of"].timestamp(),
        gate_detail=newest["gate_detail"] or "",
        errors={name: in_use[f"{name}_mape"] for name in ("capacity", "recovery", "latency") if accepted},
    )


def _runs_since(decision: DecisionFact | None, as_of_s: float | None) -> bool:
    """Whether the controller has seen a job run after a plan was made."""
    return decision is not None and decision.state == RUNNING and decision.at_s > (as_of_s or 0.0)
