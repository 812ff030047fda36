"""The Airflow operator that shows a waiting step to a person and writes down the answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator

from include.control.approvals import ASKED_FOLDER, NOBODY, ApprovalStore, WaitingStep, answer_step
from include.orchestration.waiting_steps import read_waiting_steps
from include.settings import Settings, load_settings
from include.spark.submission import anchor_paths

APPROVE, DENY = "Approve", "Deny"


class StepApprovalOperator(HITLOperator):  # type: ignore[misc]  # mypy does not follow providers
    """Show one waiting step; without an answer in time it is denied."""

    def __init__(self, *, step: Mapping[str, Any], **options: Any) -> None:
        super().__init__(options=[APPROVE, DENY], defaults=[DENY], **options)
        self.step = step

    def execute(self, context: Any) -> Any:
        """Note that the step is shown, then wait for the answer."""
        settings, step, now_s = anchor_paths(load_settings()), read_step(self.step), time.time()
        until_s = now_s + 3600 * settings.approval_expires_h(step.cluster, step.job)
        ApprovalStore(settings.paths.lake, ASKED_FOLDER).write(answer_step(step, False, "airflow", now_s, until_s))
        return super().execute(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Write the answer where the controller reads it."""
        result = super().execute_complete(context, event)
        user = event.get("responded_by_user")
        by = (user.get("name") or user.get("id") or "somebody in Airflow") if user else ""
        write_answer(
            anchor_paths(load_settings()), read_step(self.step), result["chosen_options"] == [APPROVE], by, time.time()
        )
        return result


def write_answer(settings: Settings, step: WaitingStep, is_approved: bool, by: str, now_s: float) -> None:
    """Write a person's answer; without one in time (``by`` empty) it is a no, unless one was given elsewhere.

    Raises:
        PermissionError: the person may not answer.
    """
    store = ApprovalStore(settings.paths.lake)
    if by and not settings.roles.may("approve", by):
        raise PermissionError(f"{by} may not answer steps: roles.approve does not name them; no answer was written")
    key = (step.cluster, step.job, step.step_id)
    if not by and any((one.cluster, one.job, one.step_id) == key for one in store.read(now_s)):
        return
    until_s = now_s + 3600 * settings.approval_expires_h(step.cluster, step.job)
    store.write(answer_step(step, is_approved and bool(by), by or NOBODY, now_s, until_s))
    from include.control.interventions import (  # heavy for the parsing of DAGs
        Intervention,
        UserAction,
        record_intervention,
    )

    act, scope = UserAction.APPROVE if is_approved and by else UserAction.DENY, f"{step.cluster}/{step.job}"
    change = step.describe().partition(": ")[2]
    one = Intervention(now_s, act, scope, by or NOBODY, "answered in Airflow", change, step.step_id, until_s)
    record_intervention(settings.paths.lake, one)


def find_questions(settings: Settings, now_s: float) -> list[dict[str, Any]]:
    """Return what is to be shown and is not yet: subject, body and step of each, as arguments of the operator."""
    answers, asked = ApprovalStore(settings.paths.lake), ApprovalStore(settings.paths.lake, ASKED_FOLDER)
    for store in (answers, asked):
        store.delete_expired(now_s)
    waiting = read_waiting_steps(settings, now_s, [*answers.read(now_s), *asked.read(now_s)])
    return [format_question(step) for step in waiting]


def format_question(step: WaitingStep) -> dict[str, Any]:
    """Return the arguments that show a step; a name is shown as it is, whatever it holds."""
    slots = " -> ".join(str(max(one.values(), default=0)) for one in (step.parallelism_from, step.parallelism_to))
    written = asdict(step) | {"at": step.at.isoformat()}
    subject = f"{_plain(step.cluster)}/{_plain(step.job)}: parallelism {slots}"
    lines = [
        f"    {name}: {step.parallelism_from.get(name, '?')} -> {count}" for name, count in step.parallelism_to.items()
    ]
    why = f"    {step.detail}"
    body = "\n".join(["Operators:", "", *map(_plain, lines), "", "Why:", "", _plain(why), "", f"Step `{step.step_id}`"])
    return {"subject": subject, "body": body, "step": written}


def read_step(written: Mapping[str, Any]) -> WaitingStep:
    """Return the step of :func:`format_question`."""
    return WaitingStep(**{**written, "at": datetime.fromisoformat(written["at"])})


def _plain(text: str) -> str:
    """Return a text on one line, without what Markdown or a template would take for its own."""
    one_line = " ".join(text.splitlines()) if text.strip() else "(empty)"
    return one_line.replace("`", "'").replace("{{", "{ {").replace("{%", "{ %").replace("{#", "{ #")
