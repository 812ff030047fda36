"""What goes wrong between Tidewise and a Kubernetes API server."""

from __future__ import annotations


class ApiError(Exception):
    """The API server could not be asked; the message says why, without credentials."""


class ApiRefusedError(ApiError):
    """The API server has refused a request.

    Attributes:
        status: of HTTP.
        message: the server's own words.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"the API server has replied {status}: {message}")
        self.status, self.message = status, message


class ApiConflictError(ApiRefusedError):
    """The resource has changed since it was read (409): nothing was changed."""
