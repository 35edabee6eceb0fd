"""P5, for make nightly: can deleted, unknown and malformed ids be told apart by how long their answer takes?

    PYTHONPATH=tests python3 tests/store/timing.py [TRIES]

Each try comes from a loopback address of its own, since misses are limited per address.  Prints the area under the curve
of the best threshold for each pair (0.5: no telling) and fails above 0.55.
"""
import itertools
import random
import string
import sys
import time

from support.clients import remove, share
from support.figures import auc
from support.server import Server

TRIES = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
AUC_MAX = 0.55


def ask(server, number, snippet_id):
    """The seconds of one miss."""
    c = server.connect(address=f"127.{1 + number // 62500 % 200}.{1 + number // 250 % 250}.{1 + number % 250}")
    c.connect()
    began = time.perf_counter()
    c.request("GET", f"/api/v1/snippets/{snippet_id}")
    answer = c.getresponse()
    answer.read()
    took = time.perf_counter() - began
    c.close()
    assert answer.status == 404
    return took


def main():
    with Server() as server:
        deleted = []
        for _ in range(50):
            made = share(server, options={"stop_after": "trace"}).json
            assert remove(server, made).status == 204
            deleted.append(made["id"])
        letters = string.ascii_letters + string.digits
        kinds = {"deleted": lambda: random.choice(deleted),
                 "unknown": lambda: "".join(random.choices(letters, k=22)),
                 "malformed": lambda: "".join(random.choices(letters, k=21)) + "!"}
        times = {k: [] for k in kinds}
        for number in range(3 * TRIES):
            kind = random.choice(list(kinds))
            times[kind].append(ask(server, number, kinds[kind]()))
    result = {f"{a}/{b}": auc(times[a], times[b]) for a, b in itertools.combinations(kinds, 2)}
    print("timing of misses, AUC: " + ", ".join(f"{k} {v:.3f}" for k, v in result.items()))
    return max(result.values()) > AUC_MAX


if __name__ == "__main__":
    sys.exit(main())
