"""P5, for make nightly: can deleted, unknown and malformed ids be told apart by how long their answer takes?

Each try comes from a loopback address of its own, since misses are limited per address.  Prints the area under the curve
of the best threshold for each pair (0.5: no telling) and fails above 0.55.
"""
import http.client
import itertools
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from conftest import api, share  # noqa: E402

TRIES = int(sys.argv[1]) if len(sys.argv) > 1 else 5000


def ask(server, number, snippet_id):
    address = f"127.{1 + number // 62500 % 200}.{1 + number // 250 % 250}.{1 + number % 250}"
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20, source_address=(address, 0))
    c.connect()
    began = time.perf_counter()
    c.request("GET", f"/api/v1/snippets/{snippet_id}")
    answer = c.getresponse()
    answer.read()
    took = time.perf_counter() - began
    c.close()
    assert answer.status == 404
    return took


def auc(a, b):
    """The chance that a random one of a is larger than a random one of b, whichever way round is larger."""
    ranked = sorted([(x, 0) for x in a] + [(x, 1) for x in b])
    ranks = sum(i for i, (_, which) in enumerate(ranked, 1) if which == 0)
    u = (ranks - len(a) * (len(a) + 1) / 2) / (len(a) * len(b))
    return max(u, 1 - u)


def main():
    server = api.Server()
    try:
        deleted = []
        for _ in range(50):
            made = share(server, options={"stop_after": "trace"}).json
            server.request("DELETE", f"/api/v1/snippets/{made['id']}",
                           headers={"X-Nkx-Request": "1", "X-Nkx-Edit-Token": made["edit_token"]})
            deleted.append(made["id"])
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
        kinds = {"deleted": lambda: random.choice(deleted),
                 "unknown": lambda: "".join(random.choices(letters, k=22)),
                 "malformed": lambda: "".join(random.choices(letters, k=21)) + "!"}
        times = {k: [] for k in kinds}
        for number in range(3 * TRIES):
            kind = random.choice(list(kinds))
            times[kind].append(ask(server, number, kinds[kind]()))
        result = {f"{a}/{b}": auc(times[a], times[b]) for a, b in itertools.combinations(kinds, 2)}
        print("timing of misses, AUC: " + ", ".join(f"{k} {v:.3f}" for k, v in result.items()))
        return max(result.values()) > 0.55
    finally:
        server.process.kill()


if __name__ == "__main__":
    sys.exit(main())
