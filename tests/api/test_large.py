"""Large kernels: the limits are time and memory, and what is sent and kept of a result is packed."""
import gzip
import http.client
import json
import subprocess
import zlib

import pytest

from support import compiler
from support.server import Server

OPERATIONS = 800
STAGES = len(compiler.pipeline())

CHAIN = "import numpy as np\ndef f(x):\n    y = x\n" + "    y = np.maximum(np.exp(y * 0.5) - x, 0.1)\n" * (OPERATIONS // 4) + "    return y\n"
LOOP = """import numpy as np
def f(x):
    for k in range(24):
        g = np.exp(x @ x)
        h = g / np.sum(g, axis=-1, keepdims=True)
        x = np.tanh(h @ x) * 0.5 + x * (k + 1.0) - np.maximum(x, 0.0)
    return x
"""
LAYERS = """import numpy as np
def norm(x, w):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * w
def layer(x, w, wq, wk, wv, wo, up, down):
    h = norm(x, w)
    q, k, v = h @ wq, h @ wk, h @ wv
    s = q @ k.T * 0.088
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    x = x + (e / np.sum(e, axis=-1, keepdims=True)) @ v @ wo
    g = norm(x, w) @ up
    return x + (g / (1.0 + np.exp(-g))) @ down
def f(x, w, wq, wk, wv, wo, up, down):
    for _ in range(8):
        x = layer(x, w, wq, wk, wv, wo, up, down)
    return x
"""
SQUARE = {"x": [128, 128]}
WEIGHTS = {"x": [128, 128], "w": [128], **{name: [128, 128] for name in ("wq", "wk", "wv", "wo", "up", "down")}}


def inputs(shapes):
    return [{"name": name, "shape": shape, "dtype": "float32"} for name, shape in shapes.items()]


@pytest.fixture(scope="module")
def server():
    with Server("--job-cpu-s", "60", "--job-timeout-ms", "120000", "--answer-timeout-ms", "120000") as s:
        yield s


def stream(server, source, shapes, encoding):
    """The answer's headers and its pieces as they come."""
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=180)
    body = json.dumps({"source": source, "inputs": inputs(shapes)})
    c.request("POST", "/api/v1/compile", body, {"Content-Type": "application/json", "Accept": "application/x-ndjson", "Accept-Encoding": encoding})
    answer = c.getresponse()
    assert answer.status == 200
    pieces = []
    while piece := answer.read1(1 << 16):
        pieces.append(piece)
    c.close()
    return answer.headers, pieces


def unzstd(data):
    return subprocess.run(["zstd", "-dc"], input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize("source, shapes", [(CHAIN, SQUARE), (LAYERS, WEIGHTS), (LOOP, SQUARE)], ids=["800 operations", "8 decoder layers", "a loop of 24"])
def test_a_large_kernel_reaches_the_last_stage_and_reaches_the_client_packed(server, source, shapes):
    headers, pieces = stream(server, source, shapes, "gzip")
    assert headers["Content-Encoding"] == "gzip" and "Accept-Encoding" in headers["Vary"]
    text = gzip.decompress(b"".join(pieces))
    frames = [json.loads(line) for line in text.splitlines()]
    assert not [f for f in frames if f["frame"] == "diagnostic"]
    assert sum(f["frame"] == "stage" for f in frames) == STAGES and frames[-1]["status"] == "ok"
    assert len(text) > 7 * sum(map(len, pieces))
    headers, pieces = stream(server, source, shapes, "zstd, gzip")
    assert headers["Content-Encoding"] == "zstd"
    assert unzstd(b"".join(pieces)) == text and len(text) > 10 * sum(map(len, pieces))
    key = frames[0]["key"]
    assert server.get(f"/api/v1/results/{key}/sources").json == {
        table: [v for f in frames if f["frame"] == "sources" for v in f[table]] for table in ("files", "places", "sources")}
    last = server.get(f"/api/v1/results/{key}/stages/{STAGES - 1}").json
    assert last == [f["stage"] for f in frames if f["frame"] == "stage"][-1]


def test_each_piece_of_a_packed_stream_can_be_read_when_it_comes(server):
    """A stream that waits for the job has been flushed: what came so far unpacks to whole frames."""
    _, pieces = stream(server, CHAIN + "# anew\n", SQUARE, "gzip")
    unpack, text, whole = zlib.decompressobj(31), b"", 0
    for piece in pieces:
        text += unpack.decompress(piece)
        whole += text.endswith(b"}\n")
    assert unpack.eof and whole > 1


def test_a_stream_without_an_encoding_is_plain_text(server):
    headers, pieces = stream(server, LOOP, SQUARE, "identity")
    assert "Content-Encoding" not in headers
    assert json.loads(b"".join(pieces).splitlines()[-1])["frame"] == "end"


def test_what_is_kept_of_a_result_is_packed():
    with Server("--job-cpu-s", "60", "--job-timeout-ms", "120000") as s:
        headers, pieces = stream(s, CHAIN, SQUARE, "identity")
        kept = next(int(float(line.split()[-1])) for line in s.get("/metrics").body.decode().splitlines() if line.startswith("nkx_results_memory_bytes"))
        assert 0 < kept < sum(map(len, pieces)) / 4


def test_a_result_that_is_longer_than_the_limit_says_so_and_what_to_do(server):
    flood = "import os\nframe = b'{\"frame\":\"diagnostic\",\"diagnostic\":{\"message\":\"' + b'x' * (60 << 20) + b'\"}}'\nfor _ in range(9):\n    data = len(frame).to_bytes(4, 'little') + frame\n    while data:\n        data = data[os.write(3, data):]\n"
    answer = server.post({"source": flood + "def f(x): return x\n"})
    (d,) = [d for d in answer.json["diagnostics"] if d.get("code")]
    assert d["code"] == "output-limit" and d["message"] == "The result is longer than 256 MiB." and d["hint"]


def test_an_nki_product_of_200000_calls_compiles_within_the_servers_own_limits():
    """8192 x 8192 x 8192 in tiles: 65,536 matmuls, which are loops again before anything is printed of them."""
    source = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def product(lhsT, rhs):
    out = nl.ndarray((8192, 8192), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for m in range(64):
        for n in range(16):
            acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in range(64):
                a = nl.ndarray((128, 128), dtype=lhsT.dtype, buffer=nl.sbuf)
                b = nl.ndarray((128, 512), dtype=rhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=a, src=lhsT[k * 128:(k + 1) * 128, m * 128:(m + 1) * 128])
                nisa.dma_copy(dst=b, src=rhs[k * 128:(k + 1) * 128, n * 512:(n + 1) * 512])
                nisa.nc_matmul(dst=acc, stationary=a, moving=b)
            res = nl.ndarray((128, 512), dtype=lhsT.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=res, src=acc)
            nisa.dma_copy(dst=out[m * 128:(m + 1) * 128, n * 512:(n + 1) * 512], src=res)
    return out
"""
    with Server() as s:
        inputs = [{"name": name, "shape": [8192, 8192], "dtype": "bfloat16"} for name in ("lhsT", "rhs")]
        result = s.compile(source, inputs)
        assert result["status"] == "ok", result["diagnostics"]
        (kernel,) = result["kernels"]
        assert kernel["stages"][-1]["name"] == "engine-programs" and max(x["text"].count("\n") for x in kernel["stages"]) < 1000
