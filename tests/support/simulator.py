"""The product's simulator on texts of NISA (tests/sim/nisa_values.c), many of them in one process.

    with Simulator() as s:
        results = s.run(text, arrays)          # raises Fault
        s.run_us, s.instrs    # processor time and instructions of the run
        s.grown_kib           # the most memory that the process has had, beyond what it had when the run began
"""
import json
import subprocess

import numpy as np

from support.oracles.nisa_eval import DTYPES
from support.paths import BUILD

UNSIGNED = {f"ui{8 * n}": np.dtype(f"u{n}") for n in (1, 2, 4, 8)}
SCHEDULES = ("turns", "early-dma", "late-dma", "random")  # of engine programs; sim/options.h


class Fault(Exception):
    """What the program did wrong: kind ("unwritten-read", "verify", …), line of the text, instruction, message."""

    def __init__(self, answer):
        self.kind, self.line, self.message, self.instr = (answer[k] for k in ("kind", "line", "message", "instr"))
        super().__init__(f"line {self.line}: {self.kind}: {self.instr}: {self.message}")


class Simulator:
    def __enter__(self):
        self.process = subprocess.Popen([BUILD / "test/nisa_values"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def run(self, text, arrays, memory_max=0, deadline_ms=0, schedule="turns", seed=1):
        data = text.encode()
        raw = [np.ascontiguousarray(a).tobytes() for a in arrays]
        head = [len(data), memory_max, deadline_ms, SCHEDULES.index(schedule), seed, len(raw), *map(len, raw)]
        self.process.stdin.write(" ".join(map(str, head)).encode() + b"\n" + data + b"".join(raw))
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the simulator died: {self.process.wait(30)}\n{text}"
        answer = json.loads(line)
        if answer["kind"] != "ok":
            raise Fault(answer)
        self.run_us, self.instrs, self.grown_kib = (answer[k] for k in ("run_us", "instrs", "grown_kib"))
        return [np.frombuffer(self.process.stdout.read(r["bytes"]), UNSIGNED.get(r["type"]) or DTYPES[r["type"]])
                .reshape(r["shape"]) for r in answer["results"]]
