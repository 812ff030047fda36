"""Secrets of every kind, planted where the settings name them, and a search for them in everything that was written.

``plant(folder)`` makes them; ``connection_values(planted)`` gives the section ``[clusters.<name>.connection]`` that
names them; ``find_secrets(planted, ...)`` returns where one of them, or its base64, its URL form or a piece of it,
stands.  The files that hold them are left out of the search, nothing else is.
"""

from __future__ import annotations

import base64
import io
import subprocess
import urllib.parse
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow
import pyarrow.parquet
import trustme

USER, PROXY_USER = "tidewise-user", "proxy-user"
HEADER = "X-Api-Key"
KEY_VARIABLE = "TW_PLANTED_API_KEY"


@dataclass(frozen=True)
class Planted:
    """Secrets and the files that name them.

    Attributes:
        secrets: kind -> the text that must be found nowhere.
        folder: of the files that hold them.
        authority: signed the certificates of server and client.
    """

    secrets: Mapping[str, str]
    folder: Path
    authority: trustme.CA

    def environment(self) -> dict[str, str]:
        """Return the variables that hold secrets."""
        return {KEY_VARIABLE: self.secrets["header"]}

    def basic_header(self) -> str:
        login = f"{USER}:{self.secrets['basic']}"
        return f"Basic {base64.b64encode(login.encode()).decode()}"

    def proxy_header(self) -> str:
        login = f"{PROXY_USER}:{self.secrets['proxy']}"
        return f"Basic {base64.b64encode(login.encode()).decode()}"


def plant(folder: Path) -> Planted:
    """Write one secret of each kind into a folder of its own."""
    folder.mkdir(parents=True)
    authority = trustme.CA()
    client = authority.issue_cert("tidewise@example.com")
    key = client.private_key_pem.bytes().decode()
    secrets = {
        "basic": "pl4nted-basic-0b7e52d1",
        "bearer": "pl4nted.bearer.9c31aa64",
        "header": "pl4nted-header-77d0e1f2",
        "proxy": "pl4nted-proxy-5e2f8a90",
        "private key": key.splitlines()[2][:48],
    }
    (folder / "basic").write_text(f"{USER}:{secrets['basic']}\n")
    (folder / "bearer").write_text(secrets["bearer"] + "\n")
    (folder / "proxy").write_text(f"{PROXY_USER}:{secrets['proxy']}\n")
    (folder / "client.pem").write_bytes(b"".join(blob.bytes() for blob in client.cert_chain_pems))
    (folder / "client.key").write_text(key)
    authority.cert_pem.write_to_path(folder / "ca.pem")
    return Planted(secrets, folder, authority)


def connection_values(planted: Planted, *, way: str = "bearer", proxy: str | None = None) -> dict[str, object]:
    """Return the settings that name the secrets; ``way`` is ``basic`` or ``bearer``."""
    folder = planted.folder
    values: dict[str, object] = {
        "ca_file": str(folder / "ca.pem"),
        "client_cert_file": str(folder / "client.pem"),
        "client_key_file": str(folder / "client.key"),
        way: f"file:{folder / way}",
        "headers": {HEADER: f"env:{KEY_VARIABLE}"},
    }
    if proxy is not None:
        values |= {"proxy": proxy, "proxy_basic": f"file:{folder / 'proxy'}"}
    return values


def find_secrets(planted: Planted, folders: Iterable[Path] = (), texts: Mapping[str, str] | None = None) -> list[str]:
    """Return one line for each secret that was found: its kind and where.

    Args:
        planted: what to look for.
        folders: every file in them is read, in compressed ones what they hold as well.
        texts: name -> text, as a log or the output of a process.
    """
    wanted = {form: kind for kind, secret in planted.secrets.items() for form in _forms(secret)}
    result = []
    for name, text in (texts or {}).items():
        result += _found_in(name, text.encode("utf-8", "replace"), wanted)
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and planted.folder not in path.parents:
                for name, content in _contents(path):
                    result += _found_in(name, content, wanted)
    return result


def process_list() -> str:
    """Return every process with its whole command line and environment-free arguments."""
    return subprocess.run(["ps", "-eo", "pid,args", "-ww"], capture_output=True, text=True, check=True).stdout


def _forms(secret: str) -> Iterator[bytes]:
    """Yield the ways in which a secret may be written."""
    plain = secret.encode()
    yield plain
    yield urllib.parse.quote(secret, safe="").encode()
    for user in ("", f"{USER}:", f"{PROXY_USER}:"):
        # The first bytes of a login's base64 are the same for each password, so the end of it is looked for.
        yield base64.b64encode(user.encode() + plain).rstrip(b"=")[-20:-2]


def _found_in(name: str, content: bytes, wanted: Mapping[bytes, str]) -> list[str]:
    return sorted({f"{kind} in {name}" for form, kind in wanted.items() if form in content})


def _unpack(content: bytes) -> bytes:
    """Return what decompresses, member by member."""
    result = b""
    while content:
        member = zlib.decompressobj(wbits=31)
        try:
            result += member.decompress(content)
        except zlib.error:
            break
        content = member.unused_data
    return result


def _flat_columns(table: pyarrow.Table) -> Iterator[tuple[str, bytes]]:
    """Yield the bytes of each column, those of nested ones together."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)  # noqa: PLW2901 - the dictionary is no buffer of its column
        buffers = (buffer for chunk in column.chunks for buffer in chunk.buffers() if buffer is not None)
        yield name, b"|".join(buffer.to_pybytes() for buffer in buffers)


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield a file's bytes, and those of what is packed in it."""
    content = path.read_bytes()
    yield str(path), content
    if content[:2] == b"\x1f\x8b":
        yield f"{path} (unpacked)", _unpack(content)
    if content[:4] == b"PAR1":
        with suppress(pyarrow.ArrowInvalid):  # half a file, of a process that was killed
            for name, column in _flat_columns(pyarrow.parquet.read_table(io.BytesIO(content))):
                yield f"{path} ({name})", column
    if content[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            for name in packed.namelist():
                yield f"{path}:{name}", packed.read(name)
