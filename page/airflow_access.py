"""Visitors of the page within Airflow: its logged-in user, with the rights that its auth manager gives them.

Whoever may read the DAG ``tidewise_plan`` may look; who may change ``tidewise_control`` may hold, release and lift; who
may answer Required Actions of ``tidewise_approve`` may answer steps, pin and undo. The settings' roles count besides.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import get_user, requires_access_dag
from airflow.configuration import conf
from fastapi import Depends, HTTPException, Request

from page.visitors import Access, Visitor

_LOOK = requires_access_dag("GET", None, "tidewise_plan")
_HOLD = requires_access_dag("PUT", None, "tidewise_control")
_APPROVE = requires_access_dag("PUT", DagAccessEntity.HITL_DETAIL, "tidewise_approve")


def admit_user(request: Request, user: BaseUser = Depends(get_user)) -> Visitor:
    """Return the logged-in user.

    Raises:
        HTTPException: nobody is logged in, or they may not look.
    """
    _LOOK(request, user)
    return Visitor(
        login=user.get_name(),
        may_hold=_may(_HOLD, request, user),
        may_approve=_may(_APPROVE, request, user),
    )


def find_access() -> Access:
    """Return how Airflow's users are known; its secret signs the forms."""
    home = urlsplit(conf.get("api", "base_url", fallback="") or "/").path or "/"
    return Access(admit_user, conf.get_mandatory_value("api", "secret_key"), "'self'", home)


def _may(check: object, request: Request, user: BaseUser) -> bool:
    try:
        check(request, user)  # type: ignore[operator]
    except HTTPException:
        return False
    return True
