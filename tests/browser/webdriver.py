# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium over the WebDriver protocol of chromedriver, with the standard library only."""
import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request


def found():
    """Whether a browser and its driver are installed."""
    return bool(shutil.which("chromedriver") and (shutil.which("chromium") or shutil.which("google-chrome")))


class Browser:
    """One window. Close it with close(), or use it as a context."""

    def __init__(self, width=1280, height=900, dark=False, mobile=False):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                            f"--window-size={width},{height}"]}
        if mobile:
            options["mobileEmulation"] = {"deviceMetrics": {"width": width, "height": height, "pixelRatio": 2.0}}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        deadline = time.monotonic() + 60
        while True:
            try:
                session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
                break
            except (urllib.error.URLError, ConnectionError):
                if time.monotonic() > deadline or self.driver.poll() is not None:
                    self.driver.kill()
                    raise
                time.sleep(0.1)
        self.session = f"/session/{session['sessionId']}"
        if dark:
            self.devtools("Emulation.setEmulatedMedia",
                          {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})

    def _call(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def devtools(self, command, parameters):
        return self._call("POST", self.session + "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, path):
        self._call("POST", self.session + "/url", {"url": path.resolve().as_uri()})

    def run(self, script, *arguments):
        """The value of `return ...` in the page."""
        return self._call("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def keys(self, text):
        """Types into the element that has the focus."""
        actions = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self._call("POST", self.session + "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def click(self, x, y):
        """Clicks at a place of the window."""
        actions = [{"type": "pointerMove", "x": int(x), "y": int(y)}, {"type": "pointerDown", "button": 0},
                   {"type": "pointerUp", "button": 0}]
        self._call("POST", self.session + "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})

    def console(self):
        return self._call("POST", self.session + "/se/log", {"type": "browser"})

    def screenshot(self, path, whole=True):
        image = self.devtools("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        path.write_bytes(base64.b64decode(image["data"]))

    def close(self):
        try:
            self._call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
