"""P6, for make nightly: can somebody tell from how long an answer takes whether another client has compiled the same source?

Each try compiles a source that a client at one loopback address has, or has not, compiled just before, from another
address.  Prints the area under the curve of the best threshold (0.5: no telling) and fails above 0.55.
"""
import http.client
import json
import random
import sys
import time

from timing import auc
from conftest import api

TRIES = int(sys.argv[1]) if len(sys.argv) > 1 else 2000


def compile_from(server, address, source):
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60, source_address=(address, 0))
    c.connect()
    began = time.perf_counter()
    c.request("POST", "/api/v1/compile", json.dumps({"source": source, "inputs": api.FLOAT_INPUT, "options": {"stop_after": "trace"}}),
              {"Content-Type": "application/json"})
    answer = json.loads(c.getresponse().read())
    took = time.perf_counter() - began
    c.close()
    assert answer["status"] == "ok"
    return took, answer["key"]


def main():
    server = api.Server("--client-compiles", "0", "--client-jobs", "0")
    times, same_key = {True: [], False: []}, 0
    try:
        for n in range(TRIES):
            source, was_there = api.ADD_ONE + f"# {n} {random.random()}\n", random.random() < 0.5
            _, key = compile_from(server, "127.0.0.2", source if was_there else source + "#\n")
            took, mine = compile_from(server, "127.0.0.3", source)
            times[was_there].append(took)
            same_key += key == mine
        result = auc(times[True], times[False])
        print(f"compiled by another or not, by time, AUC: {result:.3f} over {TRIES} tries; {same_key} equal keys")
        return result > 0.55 or same_key > 0
    finally:
        server.process.kill()


if __name__ == "__main__":
    sys.exit(main())
