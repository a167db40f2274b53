"""A headless Chromium over the DevTools protocol on a pair of pipes: no client library, no port."""

import base64
import contextlib
import itertools
import json
import os
import select
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PATIENCE_S = 60.0
_FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--hide-scrollbars",
    "--mute-audio",
)


class Browser:
    """One browser process; every answer and event of it is read in order.

    Args:
        process: started with `--remote-debugging-pipe`.
        orders: file descriptor to write commands to.
        answers: file descriptor to read answers and events from.
    """

    def __init__(self, process: subprocess.Popen[bytes], orders: int, answers: int) -> None:
        self.events: list[dict[str, Any]] = []
        self._process = process
        self._orders, self._answers = orders, answers
        self._numbers = itertools.count(1)
        self._unread = b""

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Give one command and wait for its answer."""
        number = next(self._numbers)
        order: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session is not None:
            order["sessionId"] = session
        os.write(self._orders, json.dumps(order).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while True:
            message = self._next(deadline, method)
            if message.get("id") != number:
                self.events.append(message)
                continue
            assert "error" not in message, f"{method}: {message['error']}"
            result: dict[str, Any] = message["result"]
            return result

    def open(self, url: str, *, width: int, height: int = 900, dark: bool = False) -> "View":
        """Load a page in a window of its own and wait until it has loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        view = View(self, target, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            view.call(f"{domain}.enable")
        view.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=width < 500,
        )  # fmt: skip
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        view.call("Emulation.setEmulatedMedia", features=[theme])
        view.call("Page.navigate", url=url)
        view.wait_for(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")
        return view

    def _next(self, deadline: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"Chromium did not answer {what} within {PATIENCE_S:g} s"
            piece = os.read(self._answers, 1 << 20)
            assert piece, f"Chromium ended during {what}, with status {self._process.poll()}"
            self._unread += piece
        raw, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        return message


class View:
    """One open page.

    Args:
        browser: that it is in.
        target: its id.
        session: commands to it go through.
    """

    def __init__(self, browser: Browser, target: str, session: str) -> None:
        self._browser, self._target, self._session = browser, target, session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Give this page a command."""
        return self._browser.call(method, self._session, **params)

    def value(self, script: str) -> Any:
        """What a JavaScript expression comes to, or what its promise is kept with."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true; the page itself is asked after every frame or so."""
        deadline = time.monotonic() + PATIENCE_S
        poll = f"new Promise(done => setTimeout(() => done(Boolean({condition})), 30))"
        while True:
            with contextlib.suppress(AssertionError):  # a page that is being replaced cannot be asked
                if self.value(poll):
                    return
            assert time.monotonic() < deadline, f"it did not become true that {condition}"

    def draw_all(self) -> None:
        """Unfold and scroll through the page as a reader does, until every plot is drawn."""
        self.value("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        count = self.value("document.querySelectorAll('.plot').length")
        for place in range(count):
            plot = f"document.querySelectorAll('.plot')[{place}]"
            self.value(f"{plot}.scrollIntoView({{behavior: 'instant'}})")
            self.wait_for(f"{plot}.dataset.drawn")

    def press(self, key: str, code: int) -> None:
        """Press and release one key."""
        text = "\r" if key == "Enter" else ""
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text
            )

    def complaints(self) -> list[str]:
        """Errors and warnings of scripts, of the console and of the browser itself."""
        said = [event for event in self._own("Runtime.consoleAPICalled") if event["type"] != "log"]
        return [
            *(str(event["exceptionDetails"]) for event in self._own("Runtime.exceptionThrown")),
            *(str(event["args"]) for event in said),
            *(str(event["entry"]) for event in self._own("Log.entryAdded")),
        ]

    def requests(self) -> list[str]:
        """Addresses of everything that it asked for."""
        return [event["request"]["url"] for event in self._own("Network.requestWillBeSent")]

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Save a PNG of what is seen, or of the whole page."""
        found = self.call(
            "Page.captureScreenshot",
            format="png",
            captureBeyondViewport=whole,
            **(self._all_of_it() if whole else {}),
        )
        path.write_bytes(base64.b64decode(found["data"]))

    def close(self) -> None:
        """Close it."""
        self._browser.call("Target.closeTarget", targetId=self._target)

    def _all_of_it(self) -> dict[str, Any]:
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def _own(self, method: str) -> Iterator[dict[str, Any]]:
        self.value("0")  # what happened until now has been read when this is answered
        for event in self._browser.events:
            if event.get("sessionId") == self._session and event["method"] == method:
                yield event["params"]


@contextlib.contextmanager
def chromium(binary: str, profile: Path) -> Iterator[Browser]:
    """Start a browser, and end it with everything that it started.

    Args:
        binary: path of Chromium.
        profile: an empty folder for what it keeps.
    """
    flags = [*_FLAGS, f"--user-data-dir={profile}"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")  # its sandbox does not work for root
    theirs_in, orders = os.pipe()
    answers, theirs_out = os.pipe()
    # It reads from descriptor 3 and writes to 4, which may be ours: a shell moves them.
    command = f"exec {shlex.join([binary, *flags])} 3<&{theirs_in} 4>&{theirs_out}"
    with (profile / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            ["/bin/bash", "-c", command],
            pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
        )  # fmt: skip
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        browser = Browser(process, orders, answers)
        yield browser
        browser.call("Browser.close")
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()
        os.close(orders)
        os.close(answers)


Open = Callable[..., View]
