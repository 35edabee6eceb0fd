"""Clients of the server that several suites need: streams, snippets, threads, and the command line."""
import json
import socket
import subprocess
import threading

from support.paths import NKX
from support.server import ADD_ONE, FLOAT_INPUT, OURS


# ---- streams


def open_stream(server, source, inputs=(), accept="application/x-ndjson", cache="no-store", headers=None):
    """A socket on which the frames of a compile arrive; closing it is a client that leaves."""
    body = json.dumps({"source": source, "inputs": list(inputs)})
    lines = {"Host": "x", "Content-Type": "application/json", "Accept": accept, "Cache-Control": cache, "Content-Length": len(body),
             **(headers or {})}
    s = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    s.sendall(("POST /api/v1/compile HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "\r\n" + body).encode())
    return s


def read_until(s, mark):
    """What comes on the socket, up to and with `mark`."""
    text = b""
    while mark not in text:
        piece = s.recv(1 << 20)
        assert piece, f"the server closed before {mark}: …{text[-200:]}"
        text += piece
    return text


# ---- snippets


def share(server, source=ADD_ONE, headers=OURS, **fields):
    """The answer to a request that stores a snippet."""
    return server.request("POST", "/api/v1/snippets", {"source": source, "inputs": FLOAT_INPUT, **fields}, headers)


def read(server, made):
    """Reads what share() made, or the snippet of an id."""
    return server.get(f"/api/v1/snippets/{made['id'] if isinstance(made, dict) else made}")


def remove(server, made, token=None, query=""):
    """Removes what share() made, with its own edit token unless `token` is given."""
    return server.request("DELETE", f"/api/v1/snippets/{made['id']}{query}",
                          headers={"X-Nkx-Request": "1", "X-Nkx-Edit-Token": made["edit_token"] if token is None else token})


# ---- metrics


def metric(server, name):
    """The value of one line of /metrics; name with its labels."""
    return next(float(line.split()[-1]) for line in server.get("/metrics").body.decode().splitlines() if line.startswith(name + " "))


# ---- threads


def in_thread(work, *args):
    """Starts work(*args); what is returned waits for its end and returns its value."""
    out = []
    t = threading.Thread(target=lambda: out.append(work(*args)), daemon=True)
    t.start()

    def value():
        t.join()
        assert out, f"{work} failed"
        return out[0]
    return value


def in_threads(n, work):
    """Runs work(0) … work(n - 1) at the same time; their values, in that order."""
    return [value() for value in [in_thread(work, i) for i in range(n)]]


# ---- the command line


def nkx(*args, **options):
    """The finished process of `nkx …`."""
    return subprocess.run([NKX, *map(str, args)], capture_output=True, text=True, timeout=120, **options)


class Clients:
    """Clients that act at the same time, each in a thread, until the end: `run(number)` of a subclass is what one does, `lock` is for
    what they note together.  They begin in __init__, so a subclass calls it last."""

    def __init__(self, n):
        self.lock, self.is_over = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True) for i in range(n)]
        for t in self.threads:
            t.start()

    def end(self):
        self.is_over.set()
        for t in self.threads:
            t.join()
