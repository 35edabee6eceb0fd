"""Text from outside is text: nothing of it ever runs, whichever way it reaches the page; hostile state is left out.

Each payload goes through all channels at once (support/payloads.py).
"""
import base64
import json
import re

import pytest
import requests
from playwright.sync_api import expect

from support.marks import few
from support.page import compiled
from support.payloads import KERNEL, PAYLOADS, SAMPLE, TAGS, one_line

WATCHED = """() => { window.__hits = 0; window.__ran = () => { window.__hits++ };
    window.__reports = []; document.addEventListener('securitypolicyviolation', (e) => window.__reports.push(e.violatedDirective + ' ' + e.sourceFile)); }"""


def range_of(file="kernel.py", fn=None):
    return {"file": file, "line": 1, "col": 1, "end_line": 1, "end_col": 5, **({"fn": fn} if fn else {})}


def hostile_frames(p):
    """A whole answer in which every text is the payload."""
    text = f'module {{\n  "{one_line(p)}"() {{attr = "{one_line(p)}"}} : () -> () loc("{one_line(p)}":1:1)\n  func.func @{one_line(p)}() // {one_line(p)}\n}}\n'
    sources = {"files": ["kernel.py", p], "places": [[1, 1, 1, 1, 5, p, -1], [0, 1, 1, 1, 5, p, 0], [0, 1, 1, 1, 5, p, 9], [7, 1, 1, 1, 5, p, 3]],
               "sources": [{"places": [1, 99, 2, 3], "more": 4}]}
    stage = lambda i: {  # noqa: E731
        "index": i, "name": p, "pass": p, "phase": p, "dialect": p, "changed": True, "time_us": 5, "op_counts": {p: i + 1},
        "text": text if i else text.replace("attr", "other"), "lines": [{}, {"op": 1, "src": 0}, {"op": 2, "src": 0}, {"op": 3, "src": 99}],
        "from": {"1": [1]}, "remarks": [{"pass": p, "text": p, "op": 1, "src": 0}],
        "check": {"status": "fail", "max_abs_err": 1, "max_rel_err": 1, "reason": p}}
    tensor = {"name": p, "shape": [1], "dtype": p, "alias_of": p}
    diag = {"severity": "error", "code": p, "message": p, "hint": p, "stage": p, "kernel": 0, "range": range_of(), "calls": [range_of(p, p)]}
    return [
        {"frame": "start", "version": 1, "key": "0" * 64, "language": p, "target": p, "pipeline": p},
        {"frame": "kernel", "kernel": 0, "name": p, "pipeline": "hlo", "inputs": [tensor], "outputs": [tensor]},
        {"frame": "kernel", "kernel": 1, "name": p + "2", "pipeline": "nki", "inputs": [tensor], "outputs": [tensor]},
        {"frame": "sources", **sources},
        {"frame": "stage", "kernel": 0, "stage": stage(0)}, {"frame": "stage", "kernel": 0, "stage": stage(1)},
        {"frame": "diagnostic", "diagnostic": diag},
        {"frame": "diagnostic", "diagnostic": {**diag, "severity": "note", "code": "kernel-output", "range": None}},
        {"frame": "artifact", "artifact": {"name": p, "media_type": p, "size": 1, "sha256": p}},
        {"frame": "end", "status": "error", "time_us": 7},
    ]


def hostile_run(p):
    """The frames of a simulated run in which every text is the payload."""
    lane = {"name": p, "engine": p, "busy_us": 1, "share": 0.5, "executions": 1, "bytes": 5, "waits_us": {p: 1}}
    memory = {"capacity": 9, "peak": 5, "peak_us": 1, "points": [[0, 1, [0] * 8], [1, 5, [1] * 8]], "has_places": True, "alive": [
        {"name": p, "bytes": 5, "from_us": 0, "to_us": 1, "at": [0, 1], "place": range_of()}]}
    profile = {"target": p, "total_us": 1, "bound": p, "lanes": [lane], "launch_us": 1, "executions": 1, "memory": {"sbuf": memory, "psum": memory},
               "advice": [{"text": p, "confidence": p, "cost_us": 1, "place": range_of(p)}], "path": {"waits_us": {p: 1}},
               "lines": [{"line": 1, "file": p, "critical_us": 1, "share": 0.5, "executions": 1, "bytes": 5, "busy_us": {p: 1}}], "roofline": {}, "dma": {}, "tensor": {}}
    executions = {"version": 1, "target": p, "total_ps": 1000000, "n": 1, "lanes": [{"name": p, "engine": p}], "lengths": [1000000],
                  "instructions": [{"name": p, "line": 1, "file": p, "src_line": 1, "bytes": 1}], "tags": [{"name": p, "reason": p, "critical": True}],
                  "pages": [{"lane": 0, "from_ps": 0, "to_ps": 1000000, "instr": [0], "gap": [0], "length": [0], "tag": [0]}]}
    simulation = {"status": "ok", "reference": p, "outputs": [{"name": p, "pass": False, "max_abs_err": 1, "min": 0, "max": 1}], "values": []}
    text = base64.b64encode(json.dumps(executions).encode()).decode()
    return [{"frame": "simulation", "kernel": 0, "simulation": simulation}, {"frame": "profile", "kernel": 0, "profile": profile},
            {"frame": "artifact", "artifact": {"name": "k/executions.json", "media_type": p, "size": 1, "sha256": p, "kernel": 0}, "data": text}]


def hostile_snippet(p):
    frames = hostile_frames(p)
    of = lambda kind: [f for f in frames if f["frame"] == kind]  # noqa: E731
    result = {
        "version": 1, "key": "0" * 64, "status": "error", "language": p, "target": p, "time_us": 1, "artifacts": [],
        "kernels": [{**k, "stages": [s["stage"] for s in of("stage")] if not k["kernel"] else []} for k in of("kernel")],
        "diagnostics": [d["diagnostic"] for d in of("diagnostic")],
        **{table: [v for s in of("sources") for v in s[table]] for table in ("files", "places", "sources")}}
    view = {"version": 1, "kernelName": p, "stageKey": p, "diffFrom": p, "selection": p, "filter": p, "pane": p, "splits": {p: 0.5}}
    return {
        "id": "A" * 22, "visibility": "unlisted", "title": p, "created_ms": 1, "expires_ms": 9e12, "pipeline": p, "is_current": False,
        "ancestry": [{"visibility": "public", "created_ms": 1, "id": p, "title": p}],
        "request": {"source": KERNEL + "# " + one_line(p), "target": p, "language": p, "inputs": [{"name": p, "shape": [1], "dtype": p}]},
        "view": json.loads(json.dumps(view)), "result": result}


def assert_inert(page, p):
    assert page.evaluate("() => window.__hits") == 0, f"ran: {p!r}"
    assert page.evaluate("() => window.__reports") == [], f"reported: {p!r}"
    # no element that a payload could have made, and no address that could run
    made = page.evaluate("""() => [...document.querySelectorAll('body script, body iframe, body object, body embed, body base, body math, body video, body meta, body link, body style, [onerror], [onload], [onfocus], [ontoggle], [srcdoc]')].map((n) => n.outerHTML)
        .concat([...document.querySelectorAll('a[href], form[action]')].filter((a) => !/^(https?:|\\/|#lesson=\\w+$|$)/.test(a.getAttribute('href') ?? a.getAttribute('action') ?? '')).map((a) => a.outerHTML))""")
    assert made == [], p


def shows(page, where, p):
    """The words stand there letter by letter: controls and line ends may be shown as something else."""
    visible = re.sub(r"[\s\x00-\x1f\u202e\ufeff\u2028\u2029\u0000]+", " ", p).strip()
    pieces = [x for x in re.split(r"[\s•]+", visible) if len(x) > 3 and "\x1b" not in x]
    page.wait_for_function("([w, pieces]) => { const t = [...document.querySelectorAll(w)].map((n) => n.value ?? n.textContent).join(' '); return pieces.every((x) => t.includes(x)) }", arg=[where, pieces], timeout=8000)


@pytest.fixture(scope="module")
def hostile_page(browser, server):
    context = browser.new_context(viewport={"width": 1500, "height": 900})
    context.add_init_script(f"({WATCHED})()")
    page = context.new_page()
    dialogs = []
    page.on("dialog", lambda d: (dialogs.append(d.message), d.dismiss()))
    page.goto(server)
    compiled(page)
    yield page
    context.close()
    assert dialogs == []


@pytest.mark.parametrize("p", SAMPLE, ids=lambda p: str(PAYLOADS.index(p)))
def test_no_text_of_a_compile_ever_runs(hostile_page, server, p):
    page = hostile_page
    body = "".join(json.dumps(f) + "\n" for f in hostile_frames(p))
    page.route("**/api/v1/compile", lambda r: r.fulfill(content_type="application/x-ndjson", body=body))
    page.route("**/diff?*", lambda r: r.fulfill(json={"lines_from": 4, "lines_to": 4, "changed": 1, "removed": 0, "added": 0, "hunks": [
        {"from": {"line": 2, "count": 1}, "to": {"line": 2, "count": 1}, "pairs": [{"from": 2, "to": 2, "words_from": [[1, 9]], "words_to": [[1, 9]]}]}]}))
    try:
        page.locator("#source-editor .cm-content").focus()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(KERNEL + f"# {one_line(p)}\n")
        page.keyboard.press("Control+Enter")
        shows(page, "#problems .message", p)
        for where in ("#source-editor .cm-line", "#stages .name", "#stages .phase", "#ir-viewer .cm-line", "#ir-title", "#signature", "#kernel option",
                      "#problems .hint", "#problems .code", "#problems .printed", "#ir-note"):
            shows(page, where, p)
        page.locator("#ir-viewer .cm-line").nth(1).click(position={"x": 30, "y": 6})
        page.locator("#ir-viewer .cm-line").nth(1).hover(position={"x": 30, "y": 6})
        page.locator("#stages").focus()
        page.keyboard.press("d")
        shows(page, "#diff-viewer .cm-line", p)
        shows(page, "#diff-bar option", p)
        assert_inert(page, p)
        page.keyboard.press("d")
        # an error of the API, with whatever a proxy may have put there
        page.unroute("**/api/v1/compile")
        page.route("**/api/v1/compile", lambda r: r.fulfill(status=400, headers={"x-request-id": one_line(p).encode("ascii", "replace").decode().replace("\0", "")[:80].replace("\x1b", "").replace("\x07", "")},
                                                            json={"error": {"code": p, "message": p}}))
        page.keyboard.press("Control+Enter")
        shows(page, "#banner", p)
        assert_inert(page, p)
    finally:
        page.unroute("**/api/v1/compile")
        page.unroute("**/diff?*")


@pytest.mark.parametrize("p", SAMPLE, ids=lambda p: str(PAYLOADS.index(p)))
def test_no_text_of_a_run_a_comparison_a_search_or_a_second_stage_ever_runs(hostile_page, server, p):
    page = hostile_page
    frames = [f if f["frame"] != "end" else f | {"status": "ok"} for f in hostile_frames(p) if f["frame"] not in ("diagnostic", "artifact")]
    frames[-1:-1] = hostile_run(p)
    body = "".join(json.dumps(f) + "\n" for f in frames)
    page.route("**/api/v1/compile", lambda r: r.fulfill(content_type="application/x-ndjson", body=body))
    try:
        page.locator("#source-editor .cm-content").focus()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(KERNEL + f"# {one_line(p)} \n")
        page.keyboard.press("Control+Enter")
        shows(page, "#stages .name", p)
        page.get_by_role("button", name="Pin", exact=True).click()
        page.get_by_role("button", name="Run", exact=True).click()
        shows(page, "#run-side", p)
        page.get_by_role("button", name="tables").click()
        shows(page, "#run-tables", p)
        page.get_by_role("button", name="tables").click()
        page.locator("#run-lanes canvas").focus()
        page.keyboard.press("]")
        shows(page, "#run-chosen", p)
        assert_inert(page, p)
        page.get_by_role("button", name="Compare", exact=True).click()
        shows(page, "#compare-stages", p)
        assert_inert(page, p)
        page.get_by_role("button", name="Read", exact=True).click()
        page.locator("#ir-viewer .cm-line").nth(1).click(position={"x": 30, "y": 6})
        page.keyboard.press("Shift+Enter")
        shows(page, "#beside .cm-line", p)
        page.keyboard.press("i")
        assert_inert(page, p)
        page.keyboard.press("Control+Shift+F")
        page.get_by_role("combobox", name="Search all stages").fill("module")
        shows(page, "#search-hits", p)
        page.keyboard.press("Escape")
        page.keyboard.press("Control+k")
        page.keyboard.type("module")
        assert_inert(page, p)
        page.keyboard.press("Escape")
    finally:
        page.unroute("**/api/v1/compile")
        page.evaluate("() => { sessionStorage.clear(); localStorage.clear(); }")
        page.goto("about:blank")  # a reload would bring the pinned result back
        page.goto(server)
        compiled(page)


@pytest.fixture(scope="module")
def link(stored):
    """The id of a link that is there: too many unknown ones would be taken for guesses."""
    return stored.make(KERNEL)["id"]


@pytest.mark.parametrize("p", SAMPLE, ids=lambda p: str(PAYLOADS.index(p)))
def test_no_text_of_a_stored_link_ever_runs(hostile_page, server, link, p):
    page = hostile_page
    page.route("**/api/v1/snippets/*", lambda r: r.fulfill(json=hostile_snippet(p)))
    try:
        page.goto(f"{server}/z/{link}")
        for where in ("#shared-bar .shared-title", "#shared-bar a", "#source-editor .cm-line", "#stages .name", "#diff-viewer .cm-line, #diff-viewer .diff-message, #ir-viewer .cm-line"):
            shows(page, where, p) if "diff" not in where else expect(page.locator("#ir-pane")).to_be_visible()
        assert_inert(page, p)
        page.goto(f"{server}/e/{link}")
        shows(page, "#embed-bar .shared-title", p)
        shows(page, "#embed-bar option", p)
        assert_inert(page, p)
    finally:
        page.unroute("**/api/v1/snippets/*")


@pytest.mark.parametrize("p", SAMPLE[:: 1 if len(SAMPLE) > 20 else 3], ids=lambda p: str(PAYLOADS.index(p)))
def test_no_real_title_exception_or_output_ever_runs(hostile_page, server, stored, p):
    """Through the real server: what the kernel prints and raises, its comments, the snippet's title, the address, kept state."""
    page = hostile_page
    source = KERNEL.replace("    return", f"    print({p!r})\n    raise ValueError({p!r})\n    return") + f"# {one_line(p)}\n"
    made = stored.make(source, title=p.encode("utf-8", "replace").decode()[:60], view={"version": 1, "filter": ""})
    page.evaluate("(p) => localStorage.setItem('nkx.settings', JSON.stringify({theme: p, palette: p, splits: {[p]: p}}))", p)
    page.evaluate("(p) => localStorage.setItem('nkx.links', JSON.stringify([{id: p, token: p, title: p}, {id: 'A'.repeat(22), token: 'B'.repeat(22), title: p, visibility: 'unlisted', createdMs: 1, expiresMs: null}]))", p)
    page.goto(server + made["url"])
    shows(page, "#problems .message", p)
    shows(page, "#shared-bar .shared-title", p[:60])
    page.locator("#share").click()
    shows(page, ".my-links a", p)
    assert_inert(page, p)
    page.goto("about:blank")
    page.goto(f"{server}/#stage={requests.utils.quote(p)}&q={requests.utils.quote(p)}&kernel={requests.utils.quote(p)}&diff={requests.utils.quote(p)}"
              f"&target={requests.utils.quote(p)}&sel={requests.utils.quote(p)}&code=eJwDAAAAAAE")
    expect(page.locator("#share")).to_be_visible()
    page.wait_for_function("() => document.querySelector('#status').textContent !== ''")
    assert_inert(page, p)
    page.evaluate("() => localStorage.clear()")


def test_payloads_would_run_where_they_are_not_stopped(browser):
    """The check can fail: on a page without our policy, written as HTML, they do run."""
    page = browser.new_page()
    page.evaluate(f"({WATCHED})()")
    page.set_content("<div id=x></div>")
    page.evaluate("(list) => { for (const p of list) { const d = document.createElement('div'); d.innerHTML = p; document.body.append(d) } }", TAGS)
    page.wait_for_function("() => window.__hits >= 5")
    page.close()


# ---- hostile and old state

TOASTS = """window.__toasts = []; new MutationObserver((list) => { for (const m of list) for (const n of m.addedNodes)
    if (n.classList?.contains('toast')) window.__toasts.push(n.textContent) }).observe(document, { childList: true, subtree: true })"""


def toasted(page, text):
    """A message that passes was there."""
    page.wait_for_function("(t) => window.__toasts.some((x) => x.includes(t))", arg=text)


@pytest.mark.parametrize("kept", few(["{", "[]x", "null", "7", '"text"', '{"__proto__": {"theme": "dark"}, "constructor": 1}',
                                      '{"theme": {"toString": 1}, "fontSize": "9e99", "splits": {"__proto__": 0.5, "split-source": -4}}', '[[[[]]]]'], 3))
def test_damaged_settings_are_left_out(new_page, server, kept):
    page = new_page()
    page.goto(server)
    page.add_init_script(TOASTS)
    page.evaluate("(k) => { localStorage.setItem('nkx.settings', k); localStorage.setItem('nkx.scope', k) }", kept)
    page.reload()
    if kept in ("{", "[]x", "null", "7", '"text"'):
        toasted(page, "could not be read")
    compiled(page)
    assert page.evaluate("() => ({}).theme") is None
    assert page.evaluate("() => localStorage.getItem('nkx.scope')") != kept


@pytest.mark.parametrize("kept", few(['[null, 3, {"__proto__": {"id": "y"}}]', "{", "{}", '[{"id": "x"}]',
                                      '[{"id":"../../x","token":"t","title":"t","visibility":"public","createdMs":0,"expiresMs":null}]'], 2))
def test_a_damaged_list_of_links_is_left_out_with_a_word(new_page, server, kept):
    page = new_page()
    page.goto(server)
    compiled(page)
    page.add_init_script(TOASTS)
    page.evaluate("(k) => localStorage.setItem('nkx.links', k)", kept)
    page.reload()
    toasted(page, "The list of your links could not be read")
    compiled(page)
    page.get_by_role("button", name="Share").click()
    expect(page.locator(".my-links-box")).to_be_hidden()


@pytest.mark.parametrize("view, is_odd", few([
    (None, False), ({"version": 1}, False), ({"version": 2, "stageKey": "cse"}, True), ({"stage": "cse"}, True),
    ({"version": 1, "stageKey": {"a": 1}, "filter": 7, "pane": "nowhere"}, True),
    ({"version": 1, "stageKey": "no-such-stage", "diffFrom": "nor-this", "selection": "9999.1,2"}, False),
    ({"version": 1, "__proto__": {"wrap": True}, "constructor": "x", "splits": {"__proto__": 1, "split-source": 99}}, False),
    ({"version": 1, "filter": "x" * 5000}, True)], 4))
def test_a_view_of_another_version_is_left_out_with_a_word(new_page, server, stored, view, is_odd):
    made = stored.make(KERNEL, **({"view": view} if view is not None else {}))
    page = new_page()
    page.add_init_script(TOASTS)
    page.goto(server + made["url"])
    compiled(page)
    if is_odd:
        toasted(page, "was left out")
    else:
        assert page.evaluate("() => window.__toasts") == []
    expect(page.locator("#source-editor .cm-line").first).to_have_text("import numpy as np")
    assert page.evaluate("() => ({}).wrap") is None


def hostile_value(p):
    """A value in which every text is the payload, and one that has only a reason."""
    heat = {"at": [0, 0], "row_dim": 0, "column_dim": 1, "rows": 2, "columns": 2, "row_step": 1, "column_step": 1, "means": [1, None, 2, 3]}
    whole = {"stage": p, "index": 0, "line": 6, "op": p, "name": p, "operand": p, "execution": 2, "executions": 3, "shape": [2, 2], "dtype": p,
             "min": 1, "max": 3, "mean": 2, "std": 1, "nan": 1, "inf": 0, "zero": 0, "unwritten": 1, "histogram": {"from": 1, "to": 3, "counts": [1] * 32},
             "slice": {"start": [0, 0], "step": [1, 1], "shape": [2, 2], "data": [1, p, "nan", 3]}, "heat": heat,
             "reference": {"of": p, "name": p, "line": 1, "pass": False, "max_abs_err": 1, "max_rel_err": 1, "order": p, "differs": {"index": [0, p], "got": 1, "want": p}}}
    return [whole, {"stage": p, "index": 0, "reason": p}, {**whole, "slice": {"reason": p}}]


@pytest.mark.parametrize("p", SAMPLE, ids=lambda p: str(PAYLOADS.index(p)))
def test_no_text_of_a_value_ever_runs(hostile_page, server, p):
    page = hostile_page
    page.goto(server)
    page.locator("#source-editor .cm-content").focus()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(KERNEL)
    compiled(page)
    page.locator('#stages .stage[data-key="trace"]').click()
    answers = hostile_value(p)
    page.route("**/api/v1/compile", lambda r: r.fulfill(json={"diagnostics": [], "kernels": [{"name": p, "value": answers[0]}]}) if '"value"' in (r.request.post_data or "") else r.continue_())
    try:
        page.locator("#ir-viewer .cm-line", has_text="exponential(").click(position={"x": 4, "y": 6})
        page.locator("#ir-viewer .cm-content").focus()
        page.keyboard.press("v")
        for where in (".value-facts", ".value-verdict", ".elements"):
            shows(page, where, p)
        page.locator(".inspect-body.values").focus()
        page.keyboard.press("t")
        assert_inert(page, p)
        answers.pop(0)
        page.locator(".value-pick").nth(1).click()
        shows(page, ".values .value-message", p)
        answers.pop(0)
        page.locator(".inspect-body.values").focus()
        page.keyboard.press("]")
        page.locator(".value-pick").first.click()
        assert_inert(page, p)
    finally:
        page.unroute("**/api/v1/compile")
