"""``tidewise page``: the fleet on a page of this machine, to look at; ``--act`` and Airflow give it buttons.

``--act`` prints a link with a token, as Jupyter does: who has it may hold, pin, undo and approve in your name.
"""

from __future__ import annotations

import argparse
import os
import secrets
import time

from cli.arguments import CommandParser, whole_number
from cli.command import add_out, command, read_settings
from cli.embedded import LOOPBACK
from cli.permission import read_login
from cli.ui import UiError, require_free
from include.settings.environment import PAGE_TOKEN_VARIABLE

PORT = 8090


def run(options: argparse.Namespace, _: float) -> None:
    """Serve until Ctrl-C.

    Raises:
        SettingsError: the settings cannot be used.
        UiError: the port is taken.
    """
    read_settings(options)
    require_free(options.port, "--port")
    import uvicorn
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    from page.app import build_app
    from page.environment import open_source
    from page.visitors import Access, admit_everyone, admit_with_token

    token = (os.environ.get(PAGE_TOKEN_VARIABLE) or secrets.token_urlsafe(24)) if options.act else ""
    access = Access(admit_with_token(token, read_login()), token) if token else Access(admit_everyone)
    app = build_app(open_source(os.environ, time.time), access)
    # Another site whose name leads to this machine must not read it.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[LOOPBACK, "localhost"])
    address, about = f"http://{LOOPBACK}:{options.port}/", f"as {read_login()}" if token else "read-only"
    print(f"page: {address}{f'?token={token}' if token else ''}   ({about}; Ctrl-C stops it)", flush=True)
    uvicorn.run(app, host=LOOPBACK, port=options.port, log_level="warning", access_log=False, server_header=False)


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--port", type=whole_number(1, 65535), default=PORT, help=f"default: {PORT}")
    parser.add_argument("--act", action="store_true", help="with buttons, behind a token that is printed")
    add_out(parser)


main = command("page", __doc__, _add_arguments, run, errors=(UiError,))
