"""Sessions under load: people who type, and whether memory and descriptors are back afterwards.  sessions.py [class|screens|many]"""
import re
import subprocess
import sys
import pathlib
import time

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from browser.conftest import launch  # noqa: E402
from support.figures import figure, percentile  # noqa: E402
from support.paths import BUILD, ROOT  # noqa: E402
from support.server import Server  # noqa: E402
from support.session_page import begin, has, join, type_at_end_of  # noqa: E402
from support.wait import wait_until  # noqa: E402

NODE, SCRIPT = BUILD / "venv/bin/node", ROOT / "tests/load/sessions.mjs"


def gauge(server, name):
    return float(re.search(rf"^{name} (\S+)$", server.get("/metrics").body.decode(), re.M)[1])


# the keys that are pressed in a page, and when another page shows so many of them: milliseconds of the machine's clock
NOTE_KEYS = "() => { window.keys = []; addEventListener('keydown', (e) => { if (e.key === 'q') window.keys.push(performance.timeOrigin + e.timeStamp); }, true); }"
NOTE_SCREEN = """() => {
  window.seen = [];
  const text = document.querySelector('#source-editor .cm-content');
  new MutationObserver(() => requestAnimationFrame(() => setTimeout(() => {
    const n = text.textContent.split('q').length - 1;
    while (window.seen.length < n) window.seen.push(performance.timeOrigin + performance.now());
  }))).observe(text, { subtree: true, childList: true, characterData: true });
}"""


def screens(server):
    """60 people, of whom two have the page: from the key in one page until the other one has drawn it.  Both compile what is written."""
    with sync_playwright() as p:
        browsers = [launch(p.chromium), launch(p.chromium)]
        ann, bob = (b.new_page() for b in browsers)
        address = begin(ann, server.url)
        join(bob, address)
        crowd = subprocess.Popen([NODE, SCRIPT, server.url, "crowd", address.rsplit("/", 1)[1]], stdin=subprocess.PIPE)
        type_at_end_of(ann, 5, "  # ")
        has(bob, "# ")
        wait_until(lambda: gauge(server, "nkx_session_people") == 59, "everyone to be there", 60)
        ann.evaluate(NOTE_KEYS)
        bob.evaluate(NOTE_SCREEN)
        for _ in range(100):
            ann.keyboard.press("q")
            time.sleep(0.2)
        wait_until(lambda: bob.evaluate("window.seen.length") == 100, "all keys on the other screen", 30)
        times = [b - a for a, b in zip(ann.evaluate("window.keys"), bob.evaluate("window.seen"), strict=True)]
        crowd.stdin.close()
        assert crowd.wait(60) == 0
        for b in browsers:
            b.close()
    return f"screens: {len(times)} keys, median {percentile(times, 0.5):.0f} ms, p95 {percentile(times, 0.95):.0f} ms, slowest {max(times):.0f} ms"


def load(server, mode):
    if mode == "screens":
        return screens(server)
    r = subprocess.run([NODE, SCRIPT, server.url, mode], capture_output=True, text=True, timeout=600)
    assert r.returncode == 0, r.stderr[-3000:]
    return r.stdout.strip()


def main(modes):
    with Server("--client-links", "0", "--client-links-day", "0", "--client-connections", "0") as server:
        server.wait_until(lambda: server.get("/readyz").status == 200, "a worker that is warm")
        for mode in modes:
            before = gauge(server, "process_open_fds"), gauge(server, "process_resident_memory_bytes")
            cpu = gauge(server, "process_cpu_seconds_total")
            told = load(server, mode)
            cpu = gauge(server, "process_cpu_seconds_total") - cpu
            wait_until(lambda: gauge(server, "nkx_session_streams") == 0, "all streams have ended", 60)
            wait_until(lambda: gauge(server, "process_open_fds") <= before[0] + 4, "descriptors are back", 60)
            wait_until(lambda: gauge(server, "nkx_sessions") == 0, "rooms are forgotten", 90)
            memory = (gauge(server, "process_resident_memory_bytes") - before[1]) / 2**20
            line = f"{told}; server {cpu:.1f} s of a processor, {memory:+.0f} MiB afterwards"
            figure(line)


if __name__ == "__main__":
    main(sys.argv[1:] or ["class", "screens", "many"])
