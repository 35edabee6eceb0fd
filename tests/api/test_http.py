"""The HTTP side against clients that are slow, wrong or hostile.  The server has short deadlines."""
import base64
import hashlib
import json
import re
import select
import socket
import threading
import time

import pytest

from support.framing_attacks import ATTACKS, SMUGGLED
from support.nginx import LoggingProxy
from support.paths import BUILD, is_sanitized
from support.processes import connections, cpu_s, rss_kb
from support.server import ADD_ONE, CSP, FLOAT_INPUT, Server

HEADER_S, BODY_S, ANSWER_S = 2, 2, 3
HEAD = b"POST /api/v1/compile HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def strict():
    with Server("--header-timeout-ms", "2000", "--body-timeout-ms", "2000", "--answer-timeout-ms", "3000", "--log-requests", "yes") as s:
        yield s


@pytest.fixture(scope="module")
def nginx(strict):
    with LoggingProxy(strict) as p:
        yield p


def status(answer):
    return int(answer.split(b" ", 2)[1])


def assert_refused(answer, *statuses):
    """One answer, ours by its headers, and the connection closed (raw returned)."""
    assert len(re.findall(rb"HTTP/1\.1 \d{3} ", answer)) == 1, answer
    assert status(answer) in statuses, answer
    head, body = answer.split(b"\r\n\r\n", 1)
    assert b"Content-Security-Policy: " + CSP.encode() in head and b"nosniff" in head and b"Connection: close" in head
    assert json.loads(body)["error"]["code"]


# ---- N2, N3: slow


def until_closed(sockets, seconds, feed=None):
    """When the server closed each, in seconds from now; feed is sent to each every 0.1 s."""
    began, closed = time.monotonic(), {}
    open_ = set(sockets)
    while open_ and time.monotonic() - began < seconds:
        for s in select.select(list(open_), [], [], 0.1)[0]:
            try:
                data = s.recv(65536)
            except OSError:
                data = b""
            if not data:
                closed[s] = time.monotonic() - began
                open_.discard(s)
        for s in list(open_) if feed else []:
            try:
                s.send(feed)
            except OSError:
                pass
    return [closed.get(s) for s in sockets]


def connect_all(server, n, first=b""):
    out = []
    for _ in range(n):
        s = socket.create_connection(("127.0.0.1", server.port))
        s.sendall(first)
        s.setblocking(False)
        out.append(s)
    return out


def close_all(sockets):
    for s in sockets:
        s.close()


def test_clients_that_dribble_headers_are_closed_by_the_deadline(strict):
    clients = connect_all(strict, 200, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: ")
    thread = []
    t = threading.Thread(target=lambda: thread.append([strict.get("/healthz").status for _ in range(20)]))
    t.start()
    closed = until_closed(clients, 5 * HEADER_S, feed=b"a")
    t.join()
    close_all(clients)
    assert all(c is not None for c in closed) and min(closed) > HEADER_S / 2
    assert thread == [[200] * 20], "others were not served meanwhile"


def test_a_kept_connection_has_the_same_deadline_for_its_next_headers(strict):
    c = strict.connect()
    c.request("GET", "/healthz")
    assert c.getresponse().read()
    c.sock.setblocking(False)
    assert until_closed([c.sock], 1.5 * HEADER_S) == [None], "idle is not slow"
    c.sock.send(b"GET /healthz HTTP/1.1\r\nX: ")
    (closed,) = until_closed([c.sock], 5 * HEADER_S, feed=b"a")
    c.close()
    assert closed is not None and closed > HEADER_S / 2


@pytest.mark.parametrize("head", [b"Content-Length: 1000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n"])
def test_clients_that_dribble_bodies_are_closed_by_the_deadline(strict, head):
    clients = connect_all(strict, 50, HEAD + head)
    closed = until_closed(clients, 5 * BODY_S, feed=b"a")
    close_all(clients)
    assert all(c is not None for c in closed) and min(closed) > BODY_S / 2


def test_readers_that_stall_are_closed_and_cost_little(strict):
    result = strict.compile("import numpy as np\n\n\ndef k(x):\n" + "    x = np.exp(x) + 1\n" * 150 + "    return x\n", cache=None)
    path = f"/api/v1/results/{result['key']}"
    assert len(strict.get(path).body) > 1 << 20
    n, before = 100, rss_kb(strict.pid)
    clients = []
    for _ in range(n):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(("127.0.0.1", strict.port))
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        clients.append(s)
    assert len(connections(strict.port)) >= n
    used = [0]

    def are_closed():
        used.append(rss_kb(strict.pid) - before)
        return not connections(strict.port)
    strict.wait_until(are_closed, "the stalled readers to be closed", 60)
    close_all(clients)
    if not is_sanitized():
        assert max(used) <= 256 * n, f"{max(used)} KiB for {n} readers"
    assert strict.get("/healthz").status == 200


# ---- N4, N5: large


def test_large_bodies_are_refused_without_keeping_them(strict):
    before = rss_kb(strict.pid)
    over = json.dumps({"source": "x" * (1 << 20)}).encode()
    assert strict.post(over).status == 413
    assert_refused(strict.raw(HEAD + b"Content-Length: 10737418240\r\n\r\n" + b"x" * 100000), 413)
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with socket.create_connection(("127.0.0.1", strict.port), timeout=10) as s:  # without end
        s.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        sent = 0
        with pytest.raises(OSError):
            while sent < 4096:
                s.sendall(chunk)
                sent += 1
    assert 128 <= sent < 1024
    assert is_sanitized() or rss_kb(strict.pid) - before < 16 << 10


def test_compressed_bodies_are_refused(strict):
    for coding in (b"gzip", b"br", b"zstd", b"deflate", b"gzip, identity"):
        assert_refused(strict.raw(HEAD + b"Content-Encoding: " + coding + b"\r\nContent-Length: 2\r\n\r\n{}"), 415)


@pytest.mark.parametrize("what, statuses", {
    b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(1000)) + b"\r\n": (431,),
    b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * (1 << 20) + b"\r\n\r\n": (431,),
    b"GET / HTTP/1.1\r\nHost: x\r\n" + b"y" * (1 << 20) + b": x\r\n\r\n": (431,),
    b"GET /" + b"a" * 65536 + b" HTTP/1.1\r\nHost: x\r\n\r\n": (414,),
    b"GET /?" + b"a&" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n": (400, 414),
    b"GET /?" + b"a&" * 101 + b" HTTP/1.1\r\nHost: x\r\n\r\n": (400,),
}.items(), ids=["1000 headers", "1 MiB value", "1 MiB name", "64 KiB path", "100000 pairs", "102 pairs"])
def test_large_heads_are_refused_cheaply(strict, what, statuses):
    before = cpu_s(strict.pid)
    for _ in range(10):
        assert_refused(strict.raw(what), *statuses)
    assert (cpu_s(strict.pid) - before) / 10 < 0.2  # a bound on hanging, not a measurement


def test_what_is_just_within_the_limits_reaches_the_handlers(strict):
    head = b"GET /" + b"a" * 16000 + b"?" + b"a&" * 99 + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    answer = strict.raw(head + b"".join(b"X-%03d: %s\r\n" % (i, b"v" * 150) for i in range(98)) + b"\r\n")
    assert status(answer) == 404 and b"Content-Security-Policy" in answer


# ---- N6: framing


def test_there_are_at_least_forty_attacks():
    assert len(ATTACKS) >= 40


def smuggled(server):
    """Lines of the log, which may come a moment after an answer: one that came late is found at the next attack."""
    return [x for x in server.log if "method=DELETE route=file" in x]


@pytest.mark.parametrize("what", ATTACKS)
def test_framing_attacks_are_refused_and_the_connection_closed(strict, what):
    assert_refused(strict.raw(ATTACKS[what]), 400, 413, 414, 415, 417, 501, 505)
    assert not smuggled(strict), "the smuggled request arrived"


def test_attacks_sent_byte_by_byte_are_refused_too(strict):
    """A few that depend on what came before, so that no cut of the stream makes them pass."""
    for what in ("both lengths", "chunk extension", "one bare line feed", "trailer"):
        with socket.create_connection(("127.0.0.1", strict.port), timeout=10) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answer = b""
            try:
                for byte in ATTACKS[what]:
                    s.send(bytes([byte]))
                while piece := s.recv(65536):
                    answer += piece
            except OSError:
                pass
        assert answer == b"" or answer.count(b"HTTP/1.1 4") == 1 and b"HTTP/1.1 2" not in answer


def test_a_malformed_request_after_good_ones_is_answered_last(strict):
    good = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = strict.raw(good + good + b"GET /healthz HTTP/1.1\nHost: x\r\n\r\n" + good)
    assert re.findall(rb"HTTP/1\.1 (\d{3}) ", answer) == [b"200", b"200", b"400"]
    answer = strict.raw(good + b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" + good)
    assert answer.count(b"HTTP/1.1 200") == 2, "what follows the last request is not one"


def test_a_smuggled_request_would_be_seen():
    with Server("--log-requests", "yes") as s:
        s.raw(SMUGGLED, timeout=0.5)
        s.wait_until(lambda: smuggled(s), "its line in the log", 10)


def test_proxy_and_server_agree_on_the_number_of_requests(strict, nginx):
    def served():  # what was refused unread is one request, too
        return len([x for x in strict.log if " request method=" in x or " request_refused " in x])

    def ask(data):
        out = b""
        with socket.create_connection(("127.0.0.1", nginx.port), timeout=5) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            try:
                while piece := s.recv(65536):
                    out += piece
            except OSError:
                pass
        return out

    direct = served()
    plain = ask(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert status(plain) == 200
    for what, data in ATTACKS.items():
        ask(data)
        # the proxy may log a moment later, or an aborted request may not be over at the server
        strict.wait_until(lambda: served() - direct == nginx.passed(), f"both to count the same after: {what}", 5)
    assert nginx.passed() > 10, "the proxy passed some of them on"


# ---- N7: JSON


@pytest.mark.parametrize("body, place", {
    b"[" * 1000000: "nested", b'{"source":' * 100000: "nested", b'{"source": "a", "source": "b"}': "source",
    b'{"source": "\\ud800"}': "line 1", b'{"source": 1e999}': "", b'{"source": -0}': "source",
    b'{"source": "' + b"x" * (10 << 20) + b'"}': "larger", b'{"source": "\xff"}': "line 1",
    b'{"source": "a"': "line 1", b"": "line 1", b"null": "", b"[]": "", b'{"source": "a"} x': "line 1",
    b'{"source": "a", "inputs": [{"shape": [1e999], "dtype": "float32"}]}': "", b'{"source": NaN}': "line 1",
    b'{"source": "a", "inputs": [{"shape": [-1], "dtype": "float32"}]}': "shape",
    b'{"source": "a", "nothing": 1}': "nothing", b'{"source": "a\nb"}': "line 1",
    b"{" + b",".join(b'"%d": 1' % i for i in range(60000)) + b"}": "source",
}.items(), ids=lambda x: repr(x)[:40])
def test_hostile_json_is_refused_with_its_place(strict, body, place):
    answer = strict.post(body)
    assert answer.status in (400, 413), answer.body
    assert place in answer.error["message"], answer.error


# ---- X2, X4: headers

ALL_ROUTES = ["/", "/index.html", "/nothing", "/healthz", "/api/v1/pipeline", "/api/v1/examples", "/api/v1/ops", "/api/v1/targets", "/api/v1/lessons", "/api/v1/lessons/x",
              "/api/v1/compile", "/api/v1/snippets", "/api/v1/snippets/x", "/api/v1/results/x", "/z/x", "/z/x/raw", "/e/x"]
FIXED = {"Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
         "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp",
         "Cross-Origin-Resource-Policy": "same-origin",
         "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()"}


@pytest.mark.parametrize("path", ALL_ROUTES)
def test_security_headers_are_exact_on_every_route(server, path):
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
        h = server.request(method, path, headers={"Origin": "https://other.example"}).headers
        want = dict(FIXED)
        if path.startswith("/e/") and method in ("GET", "HEAD"):  # may be framed by other sites
            want["Content-Security-Policy"] = CSP.replace("frame-ancestors 'none'; ", "")
            want["Cross-Origin-Resource-Policy"] = "cross-origin"
        assert {k: h.get_all(k) for k in want} == {k: [v] for k, v in want.items()}, method
        assert not [k for k in h if k.lower().startswith("access-control-")]


def test_no_built_page_has_an_inline_script_or_style():
    pages = [p for p in (BUILD / "web").glob("**/*.html") if p.name != "offline.html"]
    if not pages:
        pytest.skip("the page is not built here")
    for page in pages:
        text = page.read_text()
        assert not re.search(r"<script(?![^>]*\ssrc=)[^>]*>|<style|\sstyle=|\son[a-z]+\s*=|javascript:", text, re.I), page


def test_the_self_contained_page_allows_its_own_script_and_style_only():
    path = BUILD / "web/offline.html"
    if not path.exists():
        pytest.skip("the page is not built here")
    text = path.read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    for tag in ("script", "style"):
        (own,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ") and not re.search(r"(src|href)=|https?://[^w]", text.split("{{data}}")[0])
    assert text.count("{{data}}") == 1


def test_another_sites_page_cannot_change_anything(server):
    body = json.dumps({"source": ADD_ONE, "inputs": FLOAT_INPUT})
    other = {"Origin": "https://other.example"}
    preflight = server.request("OPTIONS", "/api/v1/snippets", headers={
        **other, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-nkx-request"})
    assert preflight.status == 405 and not [k for k in preflight.headers if k.lower().startswith("access-control")]
    # what a page may send without asking first: three types, none of them JSON, and no header of ours
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        for path in ("/api/v1/snippets", "/api/v1/compile"):
            assert server.request("POST", path, body, {**other, "Content-Type": kind}).status in (403, 415)
    assert server.request("POST", "/api/v1/snippets", body, {**other, "Content-Type": "application/json"}).status == 403
    assert server.request("DELETE", "/api/v1/snippets/x", headers=other).status == 403
