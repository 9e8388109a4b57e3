"""Chromium without a window, spoken to over two pipes in the DevTools protocol: nothing but the standard library."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless_shell")
SECONDS = 60.0  # for one answer
SWITCHES = (
    *("--headless=new", "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check", "--disable-gpu"),
    *("--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars"),
    "--force-color-profile=srgb",
)


def chromium() -> str | None:
    """The browser's path, None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A running Chromium. `close` ends it."""

    def __init__(self, path: str, profile: Path) -> None:
        mine_in, its_out = os.pipe()
        its_in, mine_out = os.pipe()
        # The protocol wants descriptors 3 and 4, which the shell puts there; root may not have the sandbox.
        switches = [*SWITCHES, f"--user-data-dir={profile}", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        script = f'exec "$0" "$@" 3<&{its_in} 4>&{its_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, path, *switches, "about:blank"],
            pass_fds=(its_in, its_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(its_in)
        os.close(its_out)
        self._in, self._out = mine_in, mine_out
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Ask and wait for the answer; events that come before it are kept."""
        self._number += 1
        number = self._number
        asked = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self._out, json.dumps(asked).encode() + b"\0")
        end = time.monotonic() + SECONDS
        while True:
            message = self._message(end)
            if message.get("id") == number:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                answer: dict[str, Any] = message["result"]
                return answer
            self.events.append(message)

    def wait(self, method: str, session: str) -> dict[str, Any]:
        """The next event of this kind, or the first that has come since `events` was emptied."""
        end = time.monotonic() + SECONDS
        seen = 0
        while True:
            for event in self.events[seen:]:
                if event.get("method") == method and event.get("sessionId") == session:
                    return event
            seen = len(self.events)
            self.events.append(self._message(end))

    def _message(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(end - time.monotonic(), 0))
            read = os.read(self._in, 1 << 20) if ready else b""
            if not read:
                raise AssertionError("the browser says nothing" if not ready else "the browser has ended")
            self._buffer += read
        one, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        return message

    def close(self) -> None:
        for file in (self._out, self._in):
            os.close(file)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def page(self, *, width: int = 1280, height: int = 900, dark: bool = False, scripts: bool = True) -> Page:
        """A new empty page of this size and colour scheme."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, target, session, width, height, dark, scripts)


class Page:
    """One page. `told` are what its console and its log said, `asked` the addresses that it asked for."""

    def __init__(
        self, browser: Browser, target: str, session: str, width: int, height: int, dark: bool, scripts: bool
    ) -> None:
        self._browser, self._target, self._session = browser, target, session
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def open(self, address: str) -> Page:
        """Go there and wait until it is loaded."""
        self._browser.events.clear()
        answer = self.call("Page.navigate", url=address)
        assert "errorText" not in answer, answer
        self._browser.wait("Page.loadEventFired", self._session)
        return self

    def _said(self, method: str) -> list[dict[str, Any]]:
        self.evaluate("0")  # whatever was on its way has come
        return [
            one["params"]
            for one in self._browser.events
            if one.get("method") == method and one.get("sessionId") == self._session
        ]

    @property
    def told(self) -> list[str]:
        logged = [one["entry"]["text"] for one in self._said("Log.entryAdded")]
        console = [str(one["args"]) for one in self._said("Runtime.consoleAPICalled")]
        raised = [str(one["exceptionDetails"]) for one in self._said("Runtime.exceptionThrown")]
        return [*logged, *console, *raised]

    @property
    def asked(self) -> list[str]:
        return [one["request"]["url"] for one in self._said("Network.requestWillBeSent")]

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page, as JSON has it."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str, *, text: str = "") -> None:
        """A key down and up where the focus is."""
        code = {"Enter": 13, "Tab": 9, " ": 32, "ArrowRight": 39}.get(key, 0)
        down = {"key": key, "code": key if key != " " else "Space", "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **down, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **down)

    def click(self, selector: str) -> None:
        """A mouse click in the middle of what the selector finds first, scrolled into view."""
        x, y = self.evaluate(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
            "one.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});"
            "const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2] })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, *, whole: bool = True) -> bytes:
        """A PNG of the page, all of it where `whole`."""
        parameters: dict[str, Any] = {"format": "png"}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            parameters |= {
                "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1},
            }
        return base64.b64decode(self.call("Page.captureScreenshot", **parameters)["data"])

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)
