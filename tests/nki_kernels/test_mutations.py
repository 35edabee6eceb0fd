"""The analysis of mutated kernels neither fails, nor hangs, nor leaves the source (support/nki_mutations.py); and mutated kernels
that are compiled as a whole are refused or accepted, and nothing else happens."""
import os
import random
import re
import subprocess
import sys

import pytest

from support import compiler
from support.nki_kernels import HEAD, KERNELS
from support.paths import BUILD, ROOT

COUNT = int(os.environ.get("NKX_NKI_MUTATIONS", "600"))
SEED = int(os.environ.get("NKX_SEED", "1"))
PARTS = 2


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_kernels_are_analysed_without_a_failure(part):
    path = [ROOT / "tests", BUILD / "python", BUILD / "python/nkx/stubs"]
    done = subprocess.run([sys.executable, "-m", "support.nki_mutations", str(SEED * PARTS + part), str(COUNT // PARTS)],
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}, capture_output=True, text=True,
                          timeout=60 + COUNT)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    analysed = int(re.search(r"(\d+) kernels analysed, 0 failed", done.stdout).group(1))
    assert analysed >= COUNT // PARTS // 3, "most mutations are programs"


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_with_a_changed_word_is_compiled_or_refused(name):
    r = random.Random(f"{SEED} {name}")
    words = ["x", "out", "nl.add", "nl.exp", "0", "1", "129", "None", "nl.psum", "nl.sbuf", "'text'", "t", "range(2)"]
    source = KERNELS[name][0]
    for _ in range(max(1, COUNT // 600)):
        spots = list(re.finditer(r"(?<=[=(, ])(\d+|nl\.\w+|[a-z]\w*)(?=[,)\]])", source))
        at = r.choice(spots)
        changed = source[: at.start()] + r.choice(words) + source[at.end():]
        result = compiler.compile(HEAD + changed, "--stop-after", "nki-to-nisa", timeout=60)
        codes = [d["code"] for d in result["diagnostics"]]
        assert "internal" not in codes and (result["status"] == "ok") == all(d["severity"] != "error" for d in result["diagnostics"])
        assert not result["kernels"] or result["kernels"][0]["stages"][0]["name"] == "nki-ast", changed
