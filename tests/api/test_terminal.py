"""The terminal and the API give the same result object for the same job, byte for byte but for its key and its times."""
import base64
import json
import re
import subprocess

import pytest
from support.paths import BUILD, NKX

EXAMPLES = BUILD / "examples"
REFUSED = "import numpy as np\n\ndef helper(x):\n    return np.linalg.qr(x)\n\ndef f(x):\n    print('h\\u00e9llo \\x1b[1m')\n    return helper(x)\n"
HLO = """HloModule m

ENTRY main {
  x = f32[4,8]{1,0} parameter(0)
  ROOT y = f32[4,8]{1,0} exponential(x)
}
"""
JOBS = {
    "an example": ({"source": (EXAMPLES / "03_softmax.py").read_text()}, []),
    "several kernels": ({"source": (EXAMPLES / "10_column_statistics.py").read_text()}, []),
    "a check": ({"source": (EXAMPLES / "02_add_bias.py").read_text(), "options": {"check": True}}, ["--check"]),
    "a stop and a target": ({"source": (EXAMPLES / "06_gelu.py").read_text(), "target": "trn1", "options": {"stop_after": "canonicalize:2"}},
                            ["--target", "trn1", "--stop-after", "canonicalize:2"]),
    "a refusal": ({"source": REFUSED, "inputs": [{"name": "x", "shape": [4, 8], "dtype": "float32"}]}, ["--input", "x=4x8:f32"]),
    "a syntax error": ({"source": "def f(:\n"}, []),
    "HLO": ({"source": HLO, "language": "hlo"}, ["--language", "hlo"]),
}


def without_what_differs(text):
    text, n_keys = re.subn(r'"key":"[0-9a-f]{64}"', '"key":""', text)  # the API's has the client's scope
    assert n_keys == 1
    return re.sub(r'"time_us":\d+', '"time_us":0', text)


def in_terminal(source, *arguments):
    done = subprocess.run([NKX, "compile", "-", "--quiet", "--json", "-", *arguments], input=source,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.mark.parametrize("name", JOBS)
def test_the_result_is_the_same_in_the_terminal_and_over_http(server, name):
    job, arguments = JOBS[name]
    answer = server.post({"filename": "<stdin>", **job})
    assert answer.status == 200, answer.body
    theirs = in_terminal(job["source"], *arguments)
    assert json.loads(theirs)["status"] == ("error" if name in ("a refusal", "a syntax error") else "ok")
    assert without_what_differs(theirs) == without_what_differs(answer.body.decode()) + "\n"


def test_artifacts_are_the_same_but_for_their_data_which_the_terminal_writes_to_files(server, tmp_path):
    job, _ = JOBS["an example"]
    ours = server.post({"filename": "<stdin>", **job, "options": {"artifacts": True}}).json
    theirs = json.loads(in_terminal(job["source"], "--dump-dir", tmp_path))
    data = [base64.b64decode(a.pop("data")) for a in ours["artifacts"]]
    assert ours["artifacts"] == theirs["artifacts"]
    assert [a["name"].split("/")[1] for a in ours["artifacts"]] == ["hlo.pb", "hlo.txt", "kernel.sim.neff"]
    assert data == [(tmp_path / "kernel0" / a["name"].split("/")[1]).read_bytes() for a in theirs["artifacts"]]
