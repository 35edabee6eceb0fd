"""Debian's Firefox, driven by WebDriver BiDi: its own protocol, without a driver between.

    with Firefox() as fox:
        fox.open(url)
        fox.wait("() => document.querySelector('#status').textContent.startsWith('✓')")
        fox.click("#share")
"""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

from websockets.sync.client import connect

FIREFOX = shutil.which("firefox-esr")
# U+E000 and up stand for keys that are no characters
KEYS = {"Control": "\ue009", "Shift": "\ue008", "Alt": "\ue00a", "Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "Backspace": "\ue003", "F6": "\ue036",
        "Home": "\ue011", "End": "\ue010", "ArrowUp": "\ue013", "ArrowDown": "\ue015", "ArrowLeft": "\ue012", "ArrowRight": "\ue014"}
PREFERENCES = {
    "remote.active-protocols": 1, "browser.download.folderList": 2, "browser.download.useDownloadDir": True,
    "browser.download.always_ask_before_handling_new_types": False, "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False, "toolkit.telemetry.reportingpolicy.firstRun": False,
    "app.update.enabled": False, "app.normandy.enabled": False, "extensions.getAddons.cache.enabled": False,
    "browser.safebrowsing.update.enabled": False, "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False, "browser.startup.homepage_override.mstone": "ignore",
}


class Firefox:
    def __init__(self, width=1440, height=900):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="nkx-firefox-"))
        self.downloads = self.home / "downloads"
        self.downloads.mkdir()
        preferences = {**PREFERENCES, "browser.download.dir": str(self.downloads)}
        (self.home / "user.js").write_text("".join(f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in preferences.items()))
        self.process = subprocess.Popen(
            [FIREFOX, "--headless", "--no-remote", "--profile", self.home, "--remote-debugging-port", "0", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={"HOME": str(self.home), "PATH": "/usr/bin:/bin", "MOZ_HEADLESS": "1"})
        address = self._address()
        self.socket = connect(f"{address}/session", max_size=None, open_timeout=120).__enter__()
        self.sent = 0
        self.events: list[dict] = []
        self.send("session.new", capabilities={})
        self.send("session.subscribe", events=["log.entryAdded", "browsingContext.downloadEnd"])
        self.viewport = {"width": width, "height": height}
        self.profile = self.context = ""

    def _address(self) -> str:
        said = []
        for line in self.process.stderr:
            said.append(line)
            if found := re.search(r"listening on (ws://\S+)", line):
                return found[1]
        raise RuntimeError("Firefox did not start:\n" + "".join(said))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.send("browser.close")
            self.process.wait(60)
        finally:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            self.socket.close()
            self.process.stderr.close()
            shutil.rmtree(self.home, ignore_errors=True)

    def send(self, method: str, **params) -> dict:
        self.sent += 1
        self.socket.send(json.dumps({"id": self.sent, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv(timeout=120))
            if answer.get("id") != self.sent:
                self.events.append(answer)
            elif answer["type"] == "error":
                raise RuntimeError(f"{method}: {answer['error']}: {answer['message']}")
            else:
                return answer["result"]

    def event(self, method: str) -> dict:
        """The next event of this name; those that came before are used first."""
        while True:
            for e in self.events:
                if e.get("method") == method:
                    self.events.remove(e)
                    return e["params"]
            self.events.append(json.loads(self.socket.recv(timeout=60)))

    def complaints(self) -> list[str]:
        """What the pages have logged as errors or warnings since the last call."""
        logged = [e["params"] for e in self.events if e.get("method") == "log.entryAdded"]
        self.events = [e for e in self.events if e.get("method") != "log.entryAdded"]
        return [f"{e['level']}: {e['text']}" for e in logged if e["level"] in ("error", "warn")]

    # ---- a page

    def begin(self) -> None:
        """A page in a profile of its own, in place of the one before."""
        before = self.profile
        self.profile = self.send("browser.createUserContext")["userContext"]
        self.context = self.send("browsingContext.create", type="tab", userContext=self.profile)["context"]
        self.send("browsingContext.setViewport", context=self.context, viewport=self.viewport)
        if before:
            self.send("browser.removeUserContext", userContext=before)

    def open(self, url: str) -> None:
        self.send("browsingContext.navigate", context=self.context, url=url, wait="complete")

    def js(self, function: str, *arguments):
        """What a function of the page gives, as JSON."""
        wrapped = f"async (text) => JSON.stringify((await ({function})(...JSON.parse(text))) ?? null)"
        answer = self.send("script.callFunction", functionDeclaration=wrapped, awaitPromise=True, target={"context": self.context},
                           arguments=[{"type": "string", "value": json.dumps(arguments)}])
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    def wait(self, condition: str, *arguments, seconds: int = 60):
        """Until the condition gives something true; that."""
        return self.js(f"""async (seconds, ...rest) => {{
            const end = performance.now() + 1000 * seconds;
            for (;;) {{
              const found = await ({condition})(...rest);
              if (found) return found;
              if (performance.now() > end) throw new Error({json.dumps(condition)} + ' did not become true: ' + document.body.innerText.slice(0, 400));
              await new Promise((done) => setTimeout(done, 20));
            }} }}""", seconds, *arguments)

    def click_at(self, x: float, y: float) -> None:
        self.send("input.performActions", context=self.context, actions=[{"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "x": round(x), "y": round(y)}, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]}])

    def click(self, selector: str) -> None:
        """Clicks the middle of the first element that is there, visible and at rest."""
        x, y = self.wait("""async (selector) => {
            const place = () => { const e = document.querySelector(selector); if (!e?.checkVisibility()) return null;
              e.scrollIntoView({ block: 'nearest' }); const b = e.getBoundingClientRect(); return b.width > 0 ? [b.left + b.width / 2, b.top + b.height / 2] : null; };
            const first = place();
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            const then = place();
            return first && then && first[0] === then[0] && first[1] === then[1] ? then : null; }""", selector)
        self.click_at(x, y)

    def press(self, *keys: str) -> None:
        """Keys with their modifiers: "j", "Control+k"."""
        actions = []
        for key in keys:
            parts = [KEYS.get(k, k) for k in key.split("+")]
            actions += [{"type": "keyDown", "value": k} for k in parts]
            actions += [{"type": "keyUp", "value": k} for k in reversed(parts)]
        self.send("input.performActions", context=self.context, actions=[{"type": "key", "id": "keys", "actions": actions}])

    def type(self, text: str) -> None:
        self.press(*["Enter" if c == "\n" else c for c in text])
