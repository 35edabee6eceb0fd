"""Benchmarks of the page, in the browser of the tests: is it as quick as a hand?

    PYTHONPATH=tests python3 tests/bench/page.py [--rounds N] [--json FILE]

Wall times are what a user waits; they are true only on a machine that has nothing else to do.  Beside each stands the processor
time that the page's main thread took for the same step (CDP: Performance.getMetrics, ThreadTime), which other work on the
machine changes little.  The bars are those of wall times.
"""
import argparse
import json
import statistics
import sys

from playwright.sync_api import expect, sync_playwright

from support.page import compiled, open_stage, write
from support.paths import ROOT
from support.server import Server

ARGS = ["--no-sandbox", "--disable-gpu"]
RAF = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
DECODER = (ROOT / "explorer/examples/12_decoder_layer.py").read_text()

class Page:
    """A page of the service, and what its main thread has used."""

    def __init__(self, browser, url):
        self.page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="dark")
        self.cdp = self.page.context.new_cdp_session(self.page)
        self.cdp.send("Performance.enable")
        self.page.goto(url)
        compiled(self.page)

    def used_ms(self) -> float:
        metrics = self.cdp.send("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in metrics if m["name"] == "ThreadTime") * 1e3

    def step(self, act) -> tuple[float, float]:
        """Wall and processor time in milliseconds from an act to the second frame after it."""
        used = self.used_ms()
        start = self.page.evaluate("() => performance.now()")
        act()
        self.page.evaluate(RAF)
        wall = self.page.evaluate("(t) => performance.now() - t", start)
        return wall, self.used_ms() - used


def report(name, values, unit="ms"):
    v = sorted(values)
    p = {"p50": statistics.median(v), "p95": v[min(len(v) - 1, int(len(v) * 0.95))], "min": v[0], "max": v[-1]}
    print(f"{name:72s} p50 {p['p50']:7.1f} {unit}  p95 {p['p95']:7.1f}  max {p['max']:7.1f}", flush=True)
    return p


# From the key to the paint after which all stages of the new text are there.  The page's own clock: each key is an event
# with a time stamp, and the status changes with the stages.
WATCH_KEYS = """() => {
  window.__key = 0; window.__done = []; window.__paint = [];
  document.addEventListener('keydown', (e) => { window.__key = e.timeStamp; const at = e.timeStamp;
    requestAnimationFrame(() => setTimeout(() => window.__paint.push(performance.now() - at))); }, true);
  const status = document.querySelector('#status');
  new MutationObserver(() => { if (/^✓ \\d+ stages/.test(status.textContent) && window.__key) {
    const at = window.__key; window.__key = 0;
    requestAnimationFrame(() => setTimeout(() => window.__done.push(performance.now() - at))); } })
    .observe(status, { childList: true, subtree: true, characterData: true });
}"""


def last_key(p: Page, name: str, bar: float, rounds: int) -> dict:
    """Types a comment, a character at a time, and waits for the stages after each."""
    page = p.page
    page.locator("#source-editor .cm-content").focus()
    page.keyboard.press("Control+Home")
    page.keyboard.insert_text("\n")
    page.keyboard.press("ArrowUp")
    page.keyboard.insert_text("# ")
    compiled(page)
    page.evaluate(WATCH_KEYS)
    used = []
    for i in range(rounds):
        before = p.used_ms()
        page.keyboard.type("x")
        page.wait_for_function("(n) => window.__done.length > n", arg=i)
        used.append(p.used_ms() - before)
    out = {"wall": report(f"last key to all stages, {name} (bar: p50 {bar:.0f} ms)", page.evaluate("() => window.__done")),
           "cpu": report("   of the main thread, processor time", used)}
    return out


def while_compiling(p: Page, rounds: int) -> dict:
    """Keys every 40 ms while compiles of the decoder layer begin, answer and are given up."""
    page = p.page
    page.evaluate("() => { window.__paint = []; }")
    used = p.used_ms()
    for i in range(rounds):
        page.keyboard.type("abcdefgh "[i % 9], delay=0)
        page.wait_for_timeout(40 if i % 8 else 700)  # a pause now and then, so that a compile begins
    compiled(page)
    cpu = (p.used_ms() - used) / rounds
    out = {"wall": report("keypress to paint, decoder layer compiling (bar: p95 50 ms)", page.evaluate("() => window.__paint")), "cpu": cpu}
    print(f"{'   of the main thread, processor time a key, compiles and all':72s}     {cpu:7.1f} ms")
    return out


def stage_switch(p: Page) -> dict:
    page = p.page
    page.locator("#stages").press("Home")
    page.evaluate(RAF)
    count = page.locator("#stages .stage").count()
    page.evaluate("() => { window.__paint = []; }")
    steps = [p.step(lambda key=key: page.keyboard.press(key)) for key in "jk" for _ in range(count - 1)]
    return {"wall": report("stage switch, key to paint (bar: p50 50 ms, max 120 ms)", page.evaluate("() => window.__paint")),
            "cpu": report("   of the main thread, processor time until the second frame", [s[1] for s in steps])}


# Frames while something goes on: the times between them.
FRAMES = """() => { window.__frames = []; let last = performance.now(); window.__go = true;
  const tick = (t) => { window.__frames.push(t - last); last = t; if (window.__go) requestAnimationFrame(tick); };
  requestAnimationFrame(tick); }"""


def pan(p: Page, rounds: int) -> dict:
    """Moves through the timeline of the decoder layer, 231,315 executions."""
    page = p.page
    write(page, DECODER)
    expect(page.locator("#signature")).to_contain_text("decoder_layer")
    compiled(page)
    page.locator("#stages").focus()
    page.keyboard.press("R")
    expect(page.locator("#run-verdict b")).to_contain_text("bound by", timeout=120_000)
    note = page.locator("#run-note").text_content()
    print(f"the timeline: {note}; {page.locator('#run-message').text_content()}")
    canvas = page.locator("#run-lanes canvas")
    expect(canvas).to_be_visible()
    out = {"note": note}
    for name, zoom in (("all in sight", 0), ("a tenth in sight", 7), ("a thousandth in sight", 20)):
        canvas.focus()
        page.keyboard.press("Home")
        for _ in range(zoom):
            page.keyboard.press("w")
        steps = []
        for i in range(rounds):
            steps.append(p.step(lambda: page.keyboard.press("d" if i % 4 < 2 else "a")))
        # two frames a step: that of the step and the one after it
        out[name] = {"wall": report(f"pan, {name}: a step to the second frame (bar: 66 ms)", [s[0] for s in steps]),
                     "cpu": report("   of the main thread, processor time", [s[1] for s in steps])}
    page.keyboard.press("Escape")
    page.locator("#stages").focus()
    page.keyboard.press("R")
    return out


def long_stages(server, lines: int) -> str:
    """An answer whose two stages are those of the decoder layer, HLO and instructions, again and again."""
    answer = server.post({"source": DECODER}, accept="application/x-ndjson")
    frames = [json.loads(line) for line in answer.body.splitlines()]
    stages = {f["stage"]["name"]: f for f in frames if f["frame"] == "stage"}
    out = [f for f in frames if f["frame"] in ("start", "kernel", "sources", "end")]
    for i, name in enumerate(("trace", "engine-programs")):
        frame = stages[name]
        stage = frame["stage"]
        body, entries = stage["text"].rstrip("\n").split("\n"), stage["lines"]
        top = max(e.get("op", 0) for e in entries) + 1
        times = -(-lines // len(body))
        stage["text"] = "\n".join("\n".join(body) for _ in range(times)) + "\n"
        stage["lines"] = [e | {"op": e["op"] + k * top} if "op" in e else e for k in range(times) for e in entries[: len(body)]]
        stage |= {"index": i, "from": {}, "remarks": []}
        out.insert(-1, frame)
    return "".join(json.dumps(f) + "\n" for f in out)


def scroll(p: Page, server, rounds: int) -> dict:
    page = p.page
    body = long_stages(server, 100_000)
    page.route("**/api/v1/compile", lambda route: route.fulfill(content_type="application/x-ndjson", body=body))
    write(page, DECODER)
    expect(page.locator("#signature")).to_contain_text("decoder_layer")
    compiled(page)
    out = {}
    for key in ("trace", "engine-programs"):
        for full in (False, True) if key != "trace" else (True,):
            wall, cpu = p.step(lambda key=key: open_stage(page, key))
            if full and key != "trace":
                wall, cpu = p.step(lambda: page.keyboard.press("r"))
            name = f"{key}, {'full text' if full else 'compact'}"
            print(f"{name}: shown after {wall:.0f} ms, {cpu:.0f} ms of the main thread")
            out[name] = scrolled(p, name, rounds)
    return out


def scrolled(p: Page, name: str, rounds: int) -> dict:
    page = p.page
    scroller = page.locator("#ir-viewer .cm-scroller")
    scroller.evaluate("(s) => { s.scrollTop = s.scrollHeight; }")
    page.evaluate(RAF)
    out = {"last line": page.locator("#ir-viewer .cm-lineNumbers .cm-gutterElement").last.text_content()}
    print(f"its last line: {out['last line']}")
    scroller.hover()
    for how, by in (("a notch", 120), ("a page", 900), ("a flick", 40_000)):
        scroller.evaluate("(s) => { s.scrollTop = 0; }")
        page.evaluate(RAF)
        page.evaluate(FRAMES)
        steps = [p.step(lambda by=by: page.mouse.wheel(0, by)) for _ in range(rounds)]
        frames = page.evaluate("() => { window.__go = false; return window.__frames.slice(2); }")
        out[how] = {"frames": report(f"scroll {name} by {how}: time between frames (bar: max 100 ms)", frames),
                    "cpu": report("   of the main thread, processor time a step of two frames", [s[1] for s in steps])}
    return out


def within_bars(out) -> str:
    """One line: each figure with its bar, and which of them are beyond it."""
    pans = [v["wall"]["p95"] for v in out["pan"].values() if isinstance(v, dict)]
    frames = [how["frames"]["max"] for stage in out["scroll"].values() for how in stage.values() if isinstance(how, dict)]
    figures = [("last key to stages p50, first example", out["first example"]["wall"]["p50"], 150),
               ("decoder layer", out["decoder layer"]["wall"]["p50"], 500),
               ("keypress to paint p95", out["keys"]["wall"]["p95"], 50),
               ("stage switch p50", out["switch"]["wall"]["p50"], 50), ("max", out["switch"]["wall"]["max"], 120),
               ("231,315 executions panned p95 of two frames", max(pans), 66),
               ("100,000 lines scrolled, longest frame", max(frames), 100)]
    beyond = [name for name, value, bar in figures if value > bar]
    return ", ".join(f"{name} {value:.0f} ms (bar {bar})" for name, value, bar in figures) + \
        ("; all within their bars" if not beyond else "; BEYOND: " + ", ".join(beyond))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json")
    parser.add_argument("--only", help="keys, pan or scroll")
    args = parser.parse_args()
    out = {}
    with Server("--job-timeout-ms", "120000") as server, sync_playwright() as playwright:
        server.wait_until(lambda: server.get("/readyz").status == 200, "a warm worker")
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium-headless-shell", args=ARGS)
        expect.set_options(timeout=120_000)
        if args.only in (None, "keys"):
            p = Page(browser, server.url)
            out["first example"] = last_key(p, "first example", 150, args.rounds)
            write(p.page, DECODER)
            expect(p.page.locator("#signature")).to_contain_text("decoder_layer")
            compiled(p.page)
            out["decoder layer"] = last_key(p, "decoder layer", 500, args.rounds // 2)
            out["keys"] = while_compiling(p, args.rounds * 2)
            out["switch"] = stage_switch(p)
        if args.only in (None, "pan"):
            out["pan"] = pan(Page(browser, server.url), args.rounds)
        if args.only in (None, "scroll"):
            out["scroll"] = scroll(Page(browser, server.url), server, args.rounds)
        browser.close()
    if args.only is None:
        print(within_bars(out))
    if args.json:
        with open(args.json, "w") as f:
            json.dump(out, f, indent=1)


if __name__ == "__main__":
    sys.exit(main())
