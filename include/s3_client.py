"""How S3 is reached: one set of environment variables, from which Spark, delta-rs, MLflow and small objects all read.

``[storage]`` of the settings, or an Airflow connection that it names, is written into these variables when the settings
load, so programs that are started from here have it too. Where a variable says something else, nothing is chosen: the
settings are refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

ENDPOINT = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT", "MLFLOW_S3_ENDPOINT_URL")
"""Names of the endpoint: those of AWS's own clients, of delta-rs, of MLflow."""
REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")
KEY_ID, SECRET_KEY, TOKEN = ("AWS_ACCESS_KEY_ID",), ("AWS_SECRET_ACCESS_KEY",), ("AWS_SESSION_TOKEN",)
ALLOW_HTTP = "AWS_ALLOW_HTTP"
OTHERS_REGION = "us-east-1"
"""What stores with an endpoint of their own are asked with when no region is given."""
UNSAFE = {
    "AWS_S3_ALLOW_UNSAFE_RENAME": ("true", "1"),
    "AWS_CONDITIONAL_PUT": ("disabled",),
    "AWS_S3_LOCKING_PROVIDER": ("dynamodb",),
}
"""Variables, and their values, with which delta-rs commits otherwise than by a conditional create, as Spark does."""
_SECRET = {*SECRET_KEY, *TOKEN, *KEY_ID}
WRITTEN = "_TIDEWISE_S3_WRITTEN"
"""Variable that says which others come from the settings: name -> hash of the value, as JSON. No user's choice."""


class S3ClientError(ValueError):
    """Two sources say different things, or a connection cannot be read; the message names them and no secret."""


@dataclass(frozen=True, slots=True)
class S3Client:
    """Where S3 is.

    Attributes:
        endpoint: URL of the store; None for AWS's own.
        region: of the bucket; None when AWS's clients are to look for it.
    """

    endpoint: str | None
    region: str | None

    @property
    def is_plain(self) -> bool:
        """Whether requests travel without TLS."""
        return self.endpoint is not None and self.endpoint.startswith("http://")


def read_client(environment: Mapping[str, str]) -> S3Client:
    """Return where the variables say that S3 is."""
    return S3Client(_first(ENDPOINT, environment), _first(REGION, environment))


def client_options(environment: Mapping[str, str]) -> dict[str, bool]:
    """Return what object_store's client has to be told besides: it refuses HTTP unless it is allowed."""
    return {"allow_http": True} if read_client(environment).is_plain else {}


def export_client(
    endpoint: str | None, region: str | None, connection_id: str | None, environment: MutableMapping[str, str]
) -> None:
    """Write into the environment what the settings say of S3; what they leave open stays as the environment has it.

    Raises:
        S3ClientError: a variable says something else than the settings, the connection, or another variable.
    """
    for name, values_of_it in UNSAFE.items():
        if environment.get(name, "").lower() in values_of_it:
            raise S3ClientError(
                f"{name} = {environment[name]}: delta-rs would commit otherwise than Spark, so commits would be lost"
                "; remove it"
            )
    _forget_written(environment)
    given = {"storage.endpoint": (ENDPOINT, endpoint), "storage.region": (REGION, region)}
    if connection_id is not None:
        given |= _read_connection(connection_id, environment)
    values: dict[tuple[str, ...], tuple[str, str]] = {}
    sources = [
        *((names, key, value) for key, (names, value) in given.items() if value),
        *_list_variables(environment),
    ]
    for names, source, value in sources:
        first = values.setdefault(names, (source, value))
        if first[1].rstrip("/") != value.rstrip("/"):
            raise S3ClientError(_describe(first, (source, value), is_secret=bool(_SECRET & set(names))))
    if ENDPOINT in values:
        values.setdefault(REGION, ("", OTHERS_REGION))
    made = {name: value for names, (_, value) in values.items() for name in names if not environment.get(name)}
    environment.update(made)
    if read_client(environment).is_plain and not environment.get(ALLOW_HTTP):
        environment[ALLOW_HTTP] = made[ALLOW_HTTP] = "true"
    if made:
        environment[WRITTEN] = json.dumps({name: _hash(value) for name, value in made.items()})


def _forget_written(environment: MutableMapping[str, str]) -> None:
    """Remove what settings that were loaded before, here or in the program that started this one, have written."""
    for name, digest in json.loads(environment.pop(WRITTEN, "{}")).items():
        if _hash(environment.get(name, "")) == digest:
            del environment[name]


def _hash(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()[:16]


def _list_variables(environment: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    for names in (ENDPOINT, REGION, KEY_ID, SECRET_KEY, TOKEN):
        yield from ((names, name, environment[name]) for name in names if environment.get(name))


def _first(names: tuple[str, ...], environment: Mapping[str, str]) -> str | None:
    return next((environment[name] for name in names if environment.get(name)), None)


def _describe(first: tuple[str, str], second: tuple[str, str], *, is_secret: bool) -> str:
    values = ("", "") if is_secret else (f" = {first[1]}", f" = {second[1]}")
    return f"{first[0]}{values[0]}, but {second[0]}{values[1]}; write it in one place, or the same in both"


def _read_connection(
    connection_id: str, environment: Mapping[str, str]
) -> dict[str, tuple[tuple[str, ...], str | None]]:
    """Return what an Airflow connection says, from the variable in which Airflow itself looks for it first."""
    variable = f"AIRFLOW_CONN_{connection_id.upper()}"
    text = environment.get(variable)
    if not text:
        raise S3ClientError(
            f"storage.connection_id: there is no variable {variable}, where drivers and commands read it; set it, or "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    login, password, extra = _parse_connection(text, variable)
    given = {
        "endpoint": (ENDPOINT, extra.get("endpoint_url")),
        "region": (REGION, extra.get("region_name")),
        "login": (KEY_ID, login or extra.get("aws_access_key_id")),
        "password": (SECRET_KEY, password or extra.get("aws_secret_access_key")),
        "token": (TOKEN, extra.get("aws_session_token")),
    }
    return {f"{variable} ({part})": one for part, one in given.items()}


def _parse_connection(text: str, variable: str) -> tuple[str | None, str | None, dict[str, str]]:
    try:
        if text.startswith("{"):
            made = json.loads(text)
            extra = made.get("extra") or {}
            extra = json.loads(extra) if isinstance(extra, str) else extra
            return made.get("login"), made.get("password"), extra
        parts = urlsplit(text)
        extra = dict(parse_qsl(parts.query))
        extra |= json.loads(extra.pop("__extra__", "{}"))
        login, password = (None if one is None else unquote(one) for one in (parts.username, parts.password))
    except (ValueError, AttributeError, TypeError):  # the error may quote a secret
        raise S3ClientError(f"{variable} is no connection as Airflow writes it, JSON or a URI") from None
    return login, password, extra
