"""Custom resources of one namespace over the API server, by Kubernetes' own Python client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from include.kubernetes.faults import ApiConflictError, ApiError, ApiRefusedError
from include.kubernetes.job_resource import GROUP, PLURALS, VERSION
from include.kubernetes.overrides import FIELD_MANAGER
from include.settings.kubernetes import Kubernetes

Resource = Mapping[str, Any]
_PAGE = 250
_CONNECT_S = 5.0


class ResourceApi(Protocol):
    """Reads and patches resources of one namespace; every method raises :class:`ApiError`."""

    def list_resources(self, kind: str) -> list[Resource]:
        """Return all resources of a kind."""

    def read_resource(self, kind: str, name: str) -> Resource | None:
        """Return a resource; None when there is none of that name."""

    def patch_resource(self, kind: str, name: str, patch: Mapping[str, Any]) -> Resource:
        """Merge a patch into a resource, once; returns it as it is then.

        Raises:
            ApiConflictError: it is no longer the version that the patch names.
        """


class CustomResourceApi:
    """Implements :class:`ResourceApi` by an ``ApiClient`` of ``kubernetes.client``; may be used by several threads."""

    def __init__(self, client: Any, namespace: str, timeout_s: float = 15.0) -> None:
        from kubernetes.client import CustomObjectsApi

        self.client, self._namespace = client, namespace
        self._api = CustomObjectsApi(client)
        self._timeout = (min(_CONNECT_S, timeout_s), timeout_s)

    def list_resources(self, kind: str) -> list[Resource]:
        """Return all resources of a kind, read page by page."""
        result: list[Resource] = []
        following: str | None = None
        while True:
            more = {"_continue": following} if following else {}
            page = self._ask(self._api.list_namespaced_custom_object, PLURALS[kind], limit=_PAGE, **more)
            result += [{"kind": kind, **one} for one in page.get("items") or []]
            following = (page.get("metadata") or {}).get("continue")
            if not following:
                return result

    def read_resource(self, kind: str, name: str) -> Resource | None:
        """Return a resource; None when there is none of that name."""
        try:
            return self._ask(self._api.get_namespaced_custom_object, PLURALS[kind], name)
        except ApiRefusedError as error:
            if error.status == 404:
                return None
            raise

    def patch_resource(self, kind: str, name: str, patch: Mapping[str, Any]) -> Resource:
        """Merge a patch into a resource, once; returns it as it is then."""
        change = self._api.patch_namespaced_custom_object
        return self._ask(change, PLURALS[kind], name, dict(patch), field_manager=FIELD_MANAGER)

    def create_event(self, event: Mapping[str, Any]) -> None:
        """Create an event in the namespace."""
        from kubernetes.client import CoreV1Api

        api = CoreV1Api(self.client)
        # Its reply as it is: an event of a newer API server may hold what this client does not know.
        _call(
            lambda: api.create_namespaced_event(
                self._namespace,
                dict(event),
                field_manager=FIELD_MANAGER,
                _request_timeout=self._timeout,
                _preload_content=False,
            )
        )

    def may(self, verb: str, plural: str, group: str = GROUP) -> bool:
        """Return whether the login may do something in the namespace, by a SelfSubjectAccessReview."""
        from kubernetes.client import AuthorizationV1Api

        attributes = {"namespace": self._namespace, "verb": verb, "group": group, "resource": plural}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        api = AuthorizationV1Api(self.client)
        reply = _call(lambda: api.create_self_subject_access_review(review, _request_timeout=self._timeout))
        return bool(reply.status is not None and reply.status.allowed)

    def _ask(self, function: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
        options["_request_timeout"] = self._timeout
        reply = _call(lambda: function(GROUP, VERSION, self._namespace, *arguments, **options))
        if not isinstance(reply, dict):
            raise ApiError("the API server's reply is no object")
        return reply


def open_api(settings: Kubernetes) -> CustomResourceApi:
    """Return the API server's resources as the settings say: by a kubeconfig file, or as a pod of the cluster.

    Raises:
        ApiError: there is no such login here.
    """
    from kubernetes import client, config

    options = client.Configuration()
    options.retries = False  # a request that may have arrived is judged afresh, never repeated
    try:
        if settings.kubeconfig is None:
            config.load_incluster_config(client_configuration=options)
        else:
            path = Path(settings.kubeconfig).expanduser()
            config.load_kube_config(str(path), settings.context, client_configuration=options, persist_config=False)
    except (config.ConfigException, OSError, ValueError, TypeError, KeyError) as error:
        where = "no service account of a pod" if settings.kubeconfig is None else f"{settings.kubeconfig} is no login"
        raise ApiError(f"{where} ({type(error).__name__})") from None
    return CustomResourceApi(client.ApiClient(options), settings.namespace, settings.timeout_s)


def _call(function: Any) -> Any:
    from kubernetes.client import ApiException
    from urllib3.exceptions import HTTPError

    try:
        return function()
    except ApiException as error:
        kind = ApiConflictError if error.status == 409 else ApiRefusedError
        raise kind(int(error.status or 0), _message(error)) from None
    except (HTTPError, OSError, ValueError) as error:
        raise ApiError(f"the API server cannot be asked: {type(error).__name__}") from None


def _message(error: Any) -> str:
    try:
        reported = json.loads(error.body).get("message")
    except (TypeError, ValueError, AttributeError):
        reported = None
    return str(reported or error.reason or "no reason given")[:400]
