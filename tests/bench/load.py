"""Load, as ratios in one run: the same client, the same machine, turns taken.

Cached results and stored pages are held against nginx serving the same bytes from files; small compiles, jailed and not
cached, against a service that starts one `mlir-opt-22` per request (opt_service.py), which is given the kernel as its own
first stage of MLIR.

    PYTHONPATH=tests python3 tests/bench/load.py [--rounds N] [--seconds S] [--json FILE]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from support.clients import share
from support.h2load import h2load
from support.nginx import FileServer
from support.paths import BUILD
from support.server import JOB, JSON, Peer, Server, free_port
from support.wait import wait_until

BAR_NGINX, BAR_COMPILE = 0.5, 3.0
CLIENTS = 16


class OptService(Peer):
    def __init__(self):
        self.port = free_port()
        self.process = subprocess.Popen([sys.executable, pathlib.Path(__file__).with_name("opt_service.py"), str(self.port)])
        wait_until(lambda: self.answers("/"), "the service", 60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)


def duel(name, rounds, ours, theirs, bar):
    """Both in turn; prints and returns the medians and their ratio."""
    pairs = []
    for _ in range(rounds):
        pairs.append((ours(), theirs()))
        for r in pairs[-1]:
            assert not r["refused"] and not r["errors"] and r["ok"], r
    a, b = (statistics.median(p[i]["rate"] for p in pairs) for i in (0, 1))
    ratio = statistics.median(p[0]["rate"] / p[1]["rate"] for p in pairs)
    print(f"{name:44s} {a:10.0f}/s  peer {b:10.0f}/s  ratio {ratio:6.2f}  bar {bar:4.1f}  {'ok' if ratio >= bar else 'BELOW'}",
          flush=True)
    return {"rate": a, "peer": b, "ratio": ratio, "bar": bar}


def against_nginx(server, args):
    """Pages and results by name -> path at ours; nginx has the bytes that ours sent, under the name."""
    key = server.compile(JOB["source"], cache=None)["key"]
    link = share(server).json
    gzip = {"Accept-Encoding": "gzip"}
    cases = [("cached result", f"/api/v1/results/{key}", {}),
             ("cached result, gzip", f"/api/v1/results/{key}", gzip),
             ("page of a stored snippet", link["url"], {}),
             ("page of a stored snippet, gzip", link["url"], gzip),
             ("stored snippet with its result", f"/api/v1/snippets/{link['id']}", {}),
             ("the page's largest script", largest_script(), gzip)]
    files = {f"{i}.json": server.request("GET", path, headers=h).body for i, (_, path, h) in enumerate(cases)}
    load = {"seconds": args.seconds, "clients": CLIENTS}
    with FileServer(files) as nginx:
        return {name: duel(f"{name}, {len(files[f'{i}.json']):,} bytes", args.rounds,
                           lambda: h2load(server.port, path, headers=headers, **load),
                           lambda: h2load(nginx.port, f"/{i}.json", headers=headers, **load), BAR_NGINX)
                for i, (name, path, headers) in enumerate(cases)}


def largest_script():
    return "/" + str(max((BUILD / "web").rglob("*.js"), key=lambda p: p.stat().st_size).relative_to(BUILD / "web"))


def first_mlir(server):
    stages = server.compile(JOB["source"])["kernels"][0]["stages"]
    return next(s["text"] for s in stages if s["dialect"] == "linalg")


def against_opt(server, args):
    source = {"source": first_mlir(server)}
    load = {"seconds": args.seconds, "clients": 4}
    with OptService() as peer:
        answer = peer.request("POST", "/", source)
        assert answer.status == 200 and answer.json["code"] == 0, answer.body
        return duel("small compiles, jailed, not cached", args.rounds,
                    lambda: h2load(server.port, "/api/v1/compile", body=JOB, headers={**JSON, "Cache-Control": "no-store"}, **load),
                    lambda: h2load(peer.port, "/", body=source, headers=JSON, **load), BAR_COMPILE)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=int, default=4)
    p.add_argument("--json")
    args = p.parse_args()
    with Server("--client-compiles", "0", "--client-jobs", "0", "--client-connections", "0") as server:
        out = against_nginx(server, args)
        out["small compiles"] = against_opt(server, args)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
