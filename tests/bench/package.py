"""What a simulation package costs beside the compile, over HTTP, for every example.

A compile with artifacts and one without are asked in turns, then each package of the first one.  A source is never sent twice,
so that no cache helps.  Other processes only add time: the bar is on the difference of the fastest of both, and the median of the
differences stands beside it.

    PYTHONPATH=tests python3 tests/bench/package.py [--rounds N] [--only NAME] [--no-bars]
"""
import argparse
import json
import statistics
import sys
import time

from support.paths import ROOT
from support.server import JSON, Server

BAR_MS = 10  # half of what is promised
EXAMPLES = ROOT / "explorer/examples"


def asked(connection, method, path, body=None):
    """(milliseconds, the answer's bytes)"""
    began = time.perf_counter()
    connection.request(method, path, body, JSON if body else {})
    answer = connection.getresponse()
    data = answer.read()
    took = (time.perf_counter() - began) * 1e3
    assert answer.status == 200, data
    return took, data


def compiled(connection, source, artifacts):
    took, data = asked(connection, "POST", "/api/v1/compile", json.dumps({"source": source, "options": {"artifacts": artifacts}}))
    result = json.loads(data)
    assert result["status"] == "ok", result["diagnostics"]
    return took, result


def slowest_download(connection, result):
    """(milliseconds, bytes) of the package that took longest: a source may have several kernels."""
    names = [a["name"] for a in result["artifacts"] if a["name"].endswith("/kernel.sim.neff")]
    assert len(names) == len(result["kernels"])
    took, package = max((asked(connection, "GET", f"/api/v1/results/{result['key']}/artifacts/{n}") for n in names), key=lambda x: x[0])
    return took, len(package)


def measure(connection, source, rounds):
    """Milliseconds of a round each: the compile without artifacts, with them, the download; and a package's bytes."""
    plain, full, download = [], [], []
    for i in range(-2, rounds):  # the first two warm up
        took = {}
        for artifacts in (False, True) if i % 2 else (True, False):
            took[artifacts], result = compiled(connection, f"# {i} {artifacts}\n{source}", artifacts)
            if artifacts:
                fetched, size = slowest_download(connection, result)
        if i >= 0:
            plain.append(took[False])
            full.append(took[True])
            download.append(fetched)
    return plain, full, download, size


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--rounds", type=int, default=21)
    args.add_argument("--only", default="")
    args.add_argument("--no-bars", action="store_true")
    args = args.parse_args()
    worst = 0
    print(f"packages beside the compile, of {args.rounds} rounds, ms (bar: {BAR_MS} ms for artifacts and download together)\n")
    print(f"{'':26s} {'compile':>8s} {'artifacts':>10s} {'median':>8s} {'download':>9s} {'median':>8s} {'together':>9s} {'bytes':>8s}")
    with Server() as server:
        connection = server.connect()
        for path in sorted(EXAMPLES.rglob("*.py")):
            name = str(path.relative_to(EXAMPLES).with_suffix(""))
            if args.only not in name:
                continue
            plain, full, download, size = measure(connection, path.read_text(), args.rounds)
            added = max(0, min(full) - min(plain))
            together = added + min(download)
            worst = max(worst, together)
            print(f"{name:26s} {min(plain):8.1f} {added:10.2f} {statistics.median(b - a for a, b in zip(plain, full)):8.2f} "
                  f"{min(download):9.2f} {statistics.median(download):8.2f} {together:9.2f} {size:8,}", flush=True)
    print(f"\nmost: {worst:.2f} ms")
    sys.exit(0 if worst < BAR_MS or args.no_bars else 1)


if __name__ == "__main__":
    main()
