"""P6, for make nightly: can a client tell from how long an answer takes whether another one has compiled the same source?

    PYTHONPATH=tests python3 tests/store/guess.py [TRIES]

Each try compiles a source that a client at one loopback address has, or has not, compiled just before, from another
address.  Prints the area under the curve of the best threshold (0.5: no telling) and fails above 0.55.
"""
import json
import random
import sys
import time

from support.figures import auc
from support.server import ADD_ONE, FLOAT_INPUT, JSON, Server

TRIES = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
AUC_MAX = 0.55


def compile_from(server, address, source):
    """The seconds that it took, and the result's key."""
    c = server.connect(address=address)
    c.connect()
    began = time.perf_counter()
    c.request("POST", "/api/v1/compile", json.dumps({"source": source, "inputs": FLOAT_INPUT, "options": {"stop_after": "trace"}}), JSON)
    answer = json.loads(c.getresponse().read())
    took = time.perf_counter() - began
    c.close()
    assert answer["status"] == "ok"
    return took, answer["key"]


def main():
    times, same_key = {True: [], False: []}, 0
    with Server("--client-compiles", "0", "--client-jobs", "0") as server:
        for n in range(TRIES):
            source, was_there = ADD_ONE + f"# {n} {random.random()}\n", random.random() < 0.5
            _, key = compile_from(server, "127.0.0.2", source if was_there else source + "#\n")
            took, mine = compile_from(server, "127.0.0.3", source)
            times[was_there].append(took)
            same_key += key == mine
    result = auc(times[True], times[False])
    print(f"compiled by another or not, by time, AUC: {result:.3f} over {TRIES} tries; {same_key} equal keys")
    return result > AUC_MAX or same_key > 0


if __name__ == "__main__":
    sys.exit(main())
