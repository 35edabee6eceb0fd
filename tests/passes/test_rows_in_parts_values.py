"""prepare-arithmetic's sums of many rows of medium length (rows.c, follow.c): values at every stage, and that partitions get several rows."""
import pytest

from support import compiler

HEAD = "import ml_dtypes\nimport numpy as np\nfrom nkigen import knob, trace\n\n\n"
KERNELS = {
    "a mean over images": ((8, 512, 14, 14), "f32", "return x.mean(axis=(2, 3))", True),
    "largest and smallest": ((4096, 200), "f32", "m = x.max(1)\n    return m - x.min(1), np.sqrt(np.abs(m)) + 1", True),
    "three leading dimensions": ((2, 16, 128, 256), "bf16", "return x.max(axis=3) * 2 + 1", True),
    "rows that are read again": ((4096, 160), "f32", "m = x.mean(1, keepdims=True)\n    return x - m", False),
    "rows that do not divide": ((4100, 160), "f32", "return x.mean(1)", False),
}


@pytest.mark.parametrize("name", KERNELS)
def test_every_stage_computes_what_numpy_computes(name):
    shape, t, body, in_parts = KERNELS[name]
    source = f"{HEAD}@trace(input_specs=[({shape}, '{t}')])\ndef f(x):\n    {body}\n"
    result = compiler.compile(source, check=True, timeout=300)
    errors = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert not errors, f"{errors}\n{source}"
    stages = result["kernels"][0]["stages"]
    assert not [s["name"] for s in stages if s["check"]["status"] == "fail"]
    assert any("neighbouring rows" in r["text"] for s in stages for r in s.get("remarks", [])) == in_parts
