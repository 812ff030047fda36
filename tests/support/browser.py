"""Chromium without a window, as a user's browser: what a page does, and what it asks the network for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_browser() -> str | None:
    """Return the path of a Chromium, None when there is none on PATH."""
    return next((result for name in NAMES if (result := shutil.which(name))), None)


def load_page(browser: str, page: Path, work: Path) -> tuple[str, str]:
    """Load a page and wait until it is still; returns its document after that, and what the browser logged."""
    log = work / "netlog.json"
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            f"--user-data-dir={work / 'profile'}",
            f"--log-net-log={log}",
            "--virtual-time-budget=5000",
            "--dump-dom",
            page.resolve().as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    return done.stdout, log.read_text()
