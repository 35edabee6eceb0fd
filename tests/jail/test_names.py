"""S6: results full of names that mean places.  The server opens no file for any of them, as the kernel sees it, and what
it hands on is either a plain name or text.

NKX_HOSTILE_NAMES: how many (make nightly sets more).
"""
import base64
import io
import json
import os
import pathlib
import random
import re
import tarfile
import urllib.parse
import zlib

from support.clients import share
from support.figures import figure
from support.paths import BUILD
from support.strace import FileTrace

NAMES = int(os.environ.get("NKX_HOSTILE_NAMES", "150"))
PER_JOB = 30
MARK = "zq9x"  # in every name, so that whatever is made of one is found in the trace
FORMS = [
    "../{m}", "../../../../../../../tmp/{m}", "/tmp/{m}", "/etc/passwd/../{m}", "//tmp//{m}", "./{m}", "{m}/..", "{m}/../../..", "..\\..\\{m}",
    "C:\\{m}", "\\\\host\\{m}", "/dev/{m}", "/dev/null/{m}", "/dev/fd/{m}", "/proc/self/fd/{m}", "/proc/self/root/tmp/{m}", "CON.{m}", "NUL {m}",
    "{m}\0.txt", "\0{m}", "{m}\n{m}", "\r\nSet-Cookie: {m}", "-{m}", "--checkpoint-action=exec={m}", "~/{m}", "$HOME/{m}", "`{m}`", "$({m})",
    "|{m}", "{m};{m}", "{m}%2f..%2f..", "%2e%2e/{m}", "%00{m}", "\u202e{m}", "\uff0e\uff0e/{m}", "\u2215{m}", "a/{m}/b/c/../../../../..",
    "file:///tmp/{m}", "http://127.0.0.1/{m}", "{m}" + "/a" * 3000, "{m}" + "x" * 65500, ".{m}", "...{m}", "{m}:stream", "nkx.sqlite/../{m}",
    "{data}/{m}", "{data}/nkx.sqlite{m}", "{build}/web/{m}", "index.html/../../{m}", "all.tar.gz{m}", "source-map.json/../{m}", " {m} ", "{m}*?[]",
]


def name(rng, data):
    form = rng.choice(FORMS)
    if rng.random() < 0.3:  # two of them, joined
        form = form[:200] + rng.choice(["/", "", "/../", "\0"]) + rng.choice(FORMS)[:200]
    return form.replace("{m}", MARK + str(rng.randrange(10**6))).replace("{data}", str(data)).replace("{build}", str(BUILD))


def job(names):
    """A kernel that says the whole result itself: names of kernels, stages and files."""
    frames = [{"frame": "kernel", "kernel": 0, "name": names[0], "inputs": [], "outputs": []}]
    third = len(names) // 3
    frames += [{"frame": "stage", "kernel": 0, "stage": {
        "index": i, "name": n, "pass": n, "phase": n, "dialect": n, "changed": True, "time_us": 1, "op_counts": {}, "text": n[:100], "lines": [],
        "from": {}, "remarks": []}} for i, n in enumerate(names[:third])]
    frames += [{"frame": "artifact", "artifact": {"name": n, "media_type": n[:300], "size": 3, "sha256": n[:64]}, "data": "YWJj"} for n in names[third:]]
    frames.append({"frame": "end", "status": "ok", "time_us": 1})
    packed = base64.b64encode(zlib.compress(json.dumps(frames).encode(), 9))
    return ("import base64, json, os, struct, ctypes, zlib\n"
            f"for f in json.loads(zlib.decompress(base64.b64decode({packed!r}))):\n    b = json.dumps(f).encode()\n    b = struct.pack('<I', len(b)) + b\n"
            "    while b:\n        b = b[os.write(3, b):]\nctypes.CDLL(None)._exit(0)\n")


def test_no_name_of_a_result_becomes_a_path(probed, tmp_path):
    rng = random.Random(9)
    server = probed
    trace = FileTrace(server.pid, tmp_path / "trace")
    assert server.get("/healthz").status == server.get("/").status == 200  # the page: a file that the trace must see
    sent, handed_on = 0, 0
    try:
        while sent < NAMES:
            names = [name(rng, server.data) for _ in range(PER_JOB)]
            if sent // PER_JOB % 4:  # a NUL anywhere makes a result that is none
                names = [n.replace("\0", "") for n in names]
            sent += len(names)
            result = server.compile(job(names), cache=None)
            names_back = [a["name"] for a in result["artifacts"]]
            assert set(names_back) <= set(names), "a name was changed"
            if sent % 3000 > 300:  # of many, a tenth is also fetched
                continue
            base = f"/api/v1/results/{result['key']}"
            packed = server.get(base + "/all.tar.gz")
            if packed.status == 200:
                for member in tarfile.open(fileobj=io.BytesIO(packed.body)).getmembers():
                    assert member.isfile() and re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._/-]*", member.name) and ".." not in member.name, member.name
                    handed_on += 1
            for n in names[:10]:
                answer = server.get(f"{base}/artifacts/{urllib.parse.quote(n)[:8000]}")
                assert answer.status in (200, 400, 404, 414), (answer.status, n)
                if answer.status == 200:
                    assert answer.body in (b"abc",) and answer.headers["Content-Disposition"].startswith("attachment"), n
            made = share(server, job(names), title=names[0][:60])
            if made.status == 201:
                assert server.get(made.json["url"]).status == server.get(f"/api/v1/snippets/{made.json['id']}").status == 200
    finally:
        threads = os.listdir(f"/proc/{server.pid}/task")
        calls = [c for c in trace.end() if c.split(" ", 1)[0] in threads]  # not those of a zygote that it started
    assert [c for c in calls if "index.html" in c], "the trace sees nothing"
    ours = (str(server.data), str(BUILD), "/proc/self/", f"/proc/{server.pid}/", "/dev/null", "/dev/urandom", "/sys/fs/cgroup", "/usr/lib/ssl/openssl.cnf", "/proc/sys/vm/overcommit_memory")
    opened = {p for c in calls for p in re.findall(r'"((?:[^"\\]|\\.)*)"', c)}
    assert [p for p in opened if MARK in p] == []
    outside = [p for p in opened if p.startswith("/") and not p.startswith(ours) and not re.match(r"/proc/\d+/(statm|stat|schedstat|status|smaps_rollup|task)", p)]
    figure(f"{sent} hostile names, {len(calls)} calls with a path, none of them by such a name")
    assert outside == []
    assert handed_on > 0
    assert not [p for p in pathlib.Path("/tmp").glob(f"*{MARK}*")]
