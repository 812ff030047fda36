"""What can go wrong between Tidewise and a Flink cluster, each by a name of its own.

A message names the cluster, the fault and the remedy.  It holds no secret: no header, no login, no query of an address.
"""

from __future__ import annotations

_FIX_LOGIN = "check the login that [clusters.<name>.connection] names, and what it may do"
_UNKNOWN_JOB = "FlinkJobNotFoundException"  # resource-requirements answers 500 with it, not 404
_HTTP_NOT_FOUND = 404


class FlinkError(RuntimeError):
    """Something about a Flink cluster that the caller has to know by name."""


class FlinkUnreachableError(FlinkError):
    """No usable reply came; whether a request was carried out nobody knows."""

    def __init__(self, place: str, attempts: int, cause: str) -> None:
        super().__init__(f"{place} did not reply ({attempts} attempts: {cause}); check rest_url and the JobManager")


class CertificateRefusedError(FlinkUnreachableError):
    """TLS failed: one side does not trust the other's certificate; no request was sent."""

    def __init__(self, place: str, cause: str) -> None:
        FlinkError.__init__(
            self,
            f"{place}: no TLS connection ({cause}); name the certificates to trust in ca_file, the client certificate "
            "in client_cert_file, both under [clusters.<name>.connection]",
        )


class ReplyTooLargeError(FlinkUnreachableError):
    """A reply was larger than the limit; the rest was not read."""

    def __init__(self, place: str, path: str, limit_bytes: int) -> None:
        FlinkError.__init__(
            self, f"{place}: the reply to {path} is larger than {limit_bytes} bytes; check that rest_url is Flink's"
        )


class ReplyTooSlowError(FlinkUnreachableError):
    """A reply took longer than the limit; the rest was not read."""

    def __init__(self, place: str, path: str, limit_s: float) -> None:
        FlinkError.__init__(
            self, f"{place}: the reply to {path} took longer than {limit_s:g} s; check the JobManager and the network"
        )


class RequestStoppedError(FlinkUnreachableError):
    """The caller was told to stop and did not wait for the reply."""

    def __init__(self, place: str, path: str) -> None:
        FlinkError.__init__(self, f"{place}: {path} was given up because the process stops")


class SentTooLateError(FlinkError):
    """The request was to be sent by a time that has passed; it was not sent."""

    def __init__(self, place: str, path: str) -> None:
        super().__init__(f"{place}: {path} was not sent: too much time has passed since it was allowed")


class SecretUnreadableError(FlinkUnreachableError):
    """A secret that the settings name cannot be read; no request was sent."""

    def __init__(self, place: str, cause: str) -> None:
        FlinkError.__init__(self, f"{place}: {cause}")


class FlinkRefusedError(FlinkError):
    """Flink, or what stands before it, replied and refused.

    Attributes:
        status: HTTP status.
        message: Flink's own.
    """

    def __init__(self, place: str, method: str, path: str, status: int, message: str) -> None:
        remedy = f"; {_FIX_LOGIN}" if status in {401, 403, 407} else ""
        super().__init__(f"{place} refused {method} {path} with {status}: {message}{remedy}")
        self.status = status
        self.message = message

    @property
    def is_unknown_job(self) -> bool:
        """Whether the cluster does not know the job of the request."""
        return self.status == _HTTP_NOT_FOUND or _UNKNOWN_JOB in self.message


class RedirectedError(FlinkRefusedError):
    """A redirect, which is never followed: it would send credentials, or a rescale, to an address nobody named."""

    def __init__(self, place: str, method: str, path: str, status: int, target: str) -> None:
        message = f"a redirect to {target}, which is not followed; write the final address as rest_url, or the login"
        super().__init__(place, method, path, status, message)


def first_error(payload: object, fallback: str) -> str:
    """Return the first line of Flink's ``{"errors": [...]}`` reply that is not a stack frame's, with its reason."""
    if not isinstance(payload, dict) or not isinstance(payload.get("errors"), list):
        return fallback
    texts = [text for text in map(str, payload["errors"]) if text.strip()]
    if not texts:
        return fallback
    headline = texts[0].splitlines()[0]
    # Flink gives a general sentence first and the stack trace second; the last "Caused by" is the reason, else its top.
    lines = [line for text in texts for line in text.splitlines()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    if not causes:
        causes = [line for line in lines[1:] if "Exception: " in line and not line.startswith(("\t", " "))]
        causes = causes[:1]
    return f"{headline} {causes[-1]}" if causes else headline
