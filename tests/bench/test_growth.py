"""A kernel of 5,000 operations compiles to the last stage, whole, in less than 15 s of processor time and 1 GiB."""
import json
import os
import subprocess

from support import compiler
from support.paths import NKX

OPERATIONS = 5000
CPU_S, RSS_KIB = 15, 1 << 20


def test_a_chain_of_5000_operations_stays_within_time_and_memory(tmp_path):
    steps = "".join(f"    y = np.maximum(np.exp(y * 0.{1 + k % 7}) - x, 0.{1 + k % 9})\n" for k in range(OPERATIONS // 4))
    (tmp_path / "chain.py").write_text(f"import numpy as np\ndef f(x):\n    y = x\n{steps}    return y\n")
    process = subprocess.Popen([NKX, "compile", str(tmp_path / "chain.py"), "--quiet", "--input", "x=128x128:f32", "--json", str(tmp_path / "result.json")])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["diagnostics"] == []
    stages = result["kernels"][0]["stages"]
    assert len(stages) == len(compiler.pipeline()) and stages[-1]["text"].count("nisa.activation") >= OPERATIONS // 4
    assert used.ru_utime + used.ru_stime < CPU_S and used.ru_maxrss < RSS_KIB, used
