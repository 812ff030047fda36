"""Chromium without a window that a test steers: pages, clicks, keys, over the DevTools protocol."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from websocket import WebSocket, create_connection

PATIENCE_S = 30.0


class BrowserError(AssertionError):
    """The browser did not do what the test asked for."""


class BrowserSession:
    """One tab."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket, self._number = socket, 0
        self.complaints: list[str] = []  # what the console says, also of a broken policy
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command; returns its result."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("method") == "Log.entryAdded":
                self.complaints.append(message["params"]["entry"]["text"])
            if message.get("method") == "Runtime.exceptionThrown":
                self.complaints.append(message["params"]["exceptionDetails"]["text"])
            if message.get("id") == self._number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def open(self, address: str) -> None:
        """Load an address, and wait for it."""
        self._await_load(lambda: self.send("Page.navigate", url=address))

    def follow(self, script: str) -> None:
        """Do something that leads to another document, and wait for that."""
        self._await_load(lambda: self.evaluate(script))

    def click(self, selector: str) -> None:
        """Click on what a selector finds, where that leads to another document."""
        self.follow(f"document.querySelector({json.dumps(selector)}).click()")

    def fill(self, selector: str, text: str) -> None:
        """Type into a field, key by key."""
        self.evaluate(f"(()=>{{const one=document.querySelector({json.dumps(selector)});one.focus();one.select()}})()")
        self.send("Input.insertText", text=text)

    def press(self, key: str, code: str = "", text: str = "") -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            number = {"Enter": 13, "Tab": 9, "ArrowRight": 39}.get(key, 0)
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=code or key, windowsVirtualKeyCode=number, **more
            )

    def text(self, selector: str = "main") -> str:
        """Return the visible text of an element, on one line."""
        return " ".join(str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")).split())

    def resize(self, width: int, height: int) -> None:
        """Be a screen of this size."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=True)

    def keep_picture(self, file: Path) -> None:
        """Write a picture of the whole page."""
        shown = self.send("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shown["data"]))

    def _await_load(self, do: Any) -> None:
        self.evaluate("window.isBefore = true")
        do()
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            with suppress(BrowserError):  # between two documents
                if self.evaluate("!window.isBefore && document.readyState === 'complete'"):
                    return
            time.sleep(0.02)
        raise BrowserError(f"no other document within {PATIENCE_S:g} s; it is at {self.evaluate('location.href')}")


@contextmanager
def browser_session(browser: str, work: Path) -> Iterator[BrowserSession]:
    """Run a browser with a profile of its own."""
    profile = work / "profile"
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--window-size=1400,1000",
    ]
    quiet = ["--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0"]
    allow = ["--remote-allow-origins=*", f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(
        [browser, *options, *quiet, *allow], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        port = _await_port(profile / "DevToolsActivePort")
        with urlopen(f"http://127.0.0.1:{port}/json", timeout=PATIENCE_S) as reply:
            (tab,) = [one for one in json.load(reply) if one["type"] == "page"]
        socket = create_connection(tab["webSocketDebuggerUrl"], timeout=PATIENCE_S)
        try:
            yield BrowserSession(socket)
        finally:
            socket.close()
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)


def _await_port(file: Path) -> int:
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        with suppress(OSError, ValueError, IndexError):
            return int(file.read_text().splitlines()[0])
        time.sleep(0.05)
    raise BrowserError("the browser did not start")
